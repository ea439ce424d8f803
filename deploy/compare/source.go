package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"msgexchange/workers/kafka"
)

// Reader reads sources. A source is a URL of /all/flights, kafka:TOPIC, or a file.
type Reader struct {
	Client *http.Client
	Token  string // sent to URLs; empty: none
	Kafka  kafka.Config
}

// Limits of what is read by HTTP.
const (
	pageLimit    = 5000
	maxPageBytes = 512 << 20
	pageTimeout  = 2 * time.Minute
)

// topicPrefix begins the name of a source that is a topic.
const topicPrefix = "kafka:"

// Running says that a source may change while it is read.
func Running(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") || strings.HasPrefix(source, topicPrefix)
}

// Read reads a whole source.
func (r Reader) Read(ctx context.Context, source string) (Set, error) {
	set := Set{}
	var err error
	switch {
	case strings.HasPrefix(source, topicPrefix):
		err = kafka.Read(ctx, r.Kafka, strings.TrimPrefix(source, topicPrefix), set.record)
	case Running(source):
		err = r.pages(ctx, source, set)
	default:
		err = set.file(source)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", source, err)
	}
	return set, nil
}

// record takes one record of a topic: of schd the newest state counts and a tombstone takes it away; of msg every change
// counts by its message and flight, whatever ids the events have.
func (s Set) record(key, value []byte) error {
	if len(value) == 0 {
		delete(s, string(key))
		return nil
	}
	var r Record
	if err := json.Unmarshal(value, &r); err != nil {
		return fmt.Errorf("record with key %s: %w", key, err)
	}
	return s.add(r)
}

// add puts a record in its place.
func (s Set) add(r Record) error {
	flid, err := number(r, "flid")
	if err != nil {
		return err
	}
	if _, isChange := r["eventId"]; !isChange {
		s[flid] = r
		return nil
	}
	message, err := number(r, "messageId")
	delete(r, "eventId")
	s[message+"/"+flid] = r
	return err
}

func number(r Record, name string) (string, error) {
	n, ok := r[name].(float64)
	if !ok {
		return "", fmt.Errorf("a record has no number %q", name)
	}
	return strconv.FormatInt(int64(n), 10), nil
}

// file reads a saved answer of /all/flights or /flights, a list of records, or one record a line.
func (s Set) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	d := json.NewDecoder(f)
	for {
		var v json.RawMessage
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.take(v); err != nil {
			return err
		}
	}
}

// take adds the records of one JSON value.
func (s Set) take(v json.RawMessage) error {
	if v = bytes.TrimSpace(v); v[0] == '[' {
		var list []Record
		if err := json.Unmarshal(v, &list); err != nil {
			return err
		}
		for _, r := range list {
			if err := s.add(r); err != nil {
				return err
			}
		}
		return nil
	}
	var answer struct{ Body, Flights json.RawMessage }
	if err := json.Unmarshal(v, &answer); err != nil {
		return err
	}
	for _, inner := range []json.RawMessage{answer.Body, answer.Flights} {
		if len(inner) > 0 && inner[0] == '[' {
			return s.take(inner)
		}
	}
	var r Record
	if err := json.Unmarshal(v, &r); err != nil {
		return err
	}
	return s.add(r)
}

// pages reads all pages of a URL.
func (r Reader) pages(ctx context.Context, source string, set Set) error {
	u, err := url.Parse(source)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("limit", strconv.Itoa(pageLimit))
	for {
		u.RawQuery = q.Encode()
		next, err := r.page(ctx, u.String(), set)
		if err != nil || next == "" {
			return err
		}
		q.Set("after", next)
	}
}

func (r Reader) page(ctx context.Context, address string, set Set) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	resp, err := r.Client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answered %s", resp.Status)
	}
	var v json.RawMessage
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxPageBytes)).Decode(&v); err != nil {
		return "", err
	}
	return resp.Header.Get("X-Next-Cursor"), set.take(v)
}
