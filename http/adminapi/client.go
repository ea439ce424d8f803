// Package adminapi asks the neighbour that serves reference data over HTTP (design §9). It expects the worst of it: answers
// that never end, are cut off, are far too large or are errors, and lets none of that through.
package adminapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/refdata"
)

// Client asks one neighbour. Safe for concurrent use.
type Client struct {
	url, token string
	http       *http.Client
}

// Config of the client; keys under "admin-api.".
type Config struct {
	URL     string        // where it is
	Token   string        // bearer token; empty: none
	Timeout time.Duration // of one call, its answer included
}

// maxBodyBytes is the largest answer that is read, unpacked.
const maxBodyBytes = 64 << 20

// New makes a client. It follows no redirect, for the token goes to the configured place only, and uses no proxy of the
// environment.
func New(c Config) *Client {
	return &Client{
		url: strings.TrimSuffix(c.URL, "/"), token: c.Token,
		http: &http.Client{
			Timeout:       c.Timeout,
			Transport:     &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, ResponseHeaderTimeout: c.Timeout},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close ends the connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// The two kinds of validators, told apart by their first letter.
const (
	byTag  = "E"
	byTime = "M"
)

// Fetch asks for what is at path. Errors: fault.Outage when the neighbour is away or cannot answer anybody now, fault.Infra
// when it refuses us, fault.Protocol when its answer is none.
func (c *Client) Fetch(ctx context.Context, path, validator string) (refdata.Answer, error) {
	const op = "ask the neighbour for reference data"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, http.NoBody)
	if err != nil {
		return refdata.Answer{}, fault.Wrap(fault.Infra, op, err)
	}
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	conditional(req.Header, validator)
	resp, err := c.http.Do(req)
	if err != nil {
		return refdata.Answer{}, fault.Wrap(fault.Outage, op, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified && validator != "":
		return refdata.Answer{Unchanged: true}, nil
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusTooManyRequests:
		return refdata.Answer{}, fault.New(fault.Outage, op, "%s: it answered %s", path, resp.Status)
	default:
		return refdata.Answer{}, fault.New(fault.Infra, op, "%s: it answered %s", path, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refdata.Answer{}, &fault.Error{Class: fault.Protocol, Op: op, Err: fmt.Errorf("%s: the answer was cut off: %w", path, err)}
	case err != nil:
		return refdata.Answer{}, fault.Wrap(fault.Outage, op, err)
	case len(body) > maxBodyBytes:
		return refdata.Answer{}, fault.New(fault.Protocol, op, "%s: the answer is larger than %d bytes", path, maxBodyBytes)
	}
	return refdata.Answer{Body: body, Validator: validatorOf(resp.Header)}, nil
}

func conditional(h http.Header, validator string) {
	if tag, ok := strings.CutPrefix(validator, byTag); ok {
		h.Set("If-None-Match", tag)
	} else if since, ok := strings.CutPrefix(validator, byTime); ok {
		h.Set("If-Modified-Since", since)
	}
}

// maxValidatorBytes is the longest validator that is kept: it is shown again, and servers refuse headers that are too long.
const maxValidatorBytes = 1024

// validatorOf prefers the tag: a time is good to the second only.
func validatorOf(h http.Header) string {
	if tag := h.Get("ETag"); usable(tag) {
		return byTag + tag
	}
	if since := h.Get("Last-Modified"); usable(since) {
		return byTime + since
	}
	return ""
}

// usable says that a validator can be kept and shown again.
func usable(v string) bool { return v != "" && len(v) <= maxValidatorBytes && utf8.ValidString(v) }
