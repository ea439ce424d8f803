package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"msgexchange/deploy/compare"
)

// contrast is the command compare.
type contrast struct {
	configured
	Left      string        `arg:"" help:"URL of /all/flights, kafka:TOPIC, or a file."`
	Right     string        `arg:"" help:"The same of the other system."`
	Tolerance string        `help:"YAML file of differences that are explained: a list of field, ids, on, why." placeholder:"FILE" type:"path"`
	Again     time.Duration `help:"Look a second time after so long, and keep what differs both times: what runs is never still." default:"5s" placeholder:"DURATION"`
	TokenFile string        `help:"File with the bearer token that is sent to URLs." placeholder:"FILE" type:"path"`
	JSON      bool          `help:"Print the report as JSON, with every difference."`
}

// Help says what the command needs and how it ends.
func (contrast) Help() string {
	return `Compares two accounts of the same flights, or two msg topics, field by field, and changes nothing.
Needs kafka.* of the configuration for topics, and nothing for URLs and files.
Ends with 1 when a difference is not explained by the tolerance file, and when a side has no records at all.`
}

// Run compares, a second time where a difference may only be on its way.
func (c contrast) Run(ctx context.Context, p *Process) error {
	cfg, done, err := c.load(p, "log", c.section())
	if done || err != nil {
		return err
	}
	reader := compare.Reader{Client: http.DefaultClient, Kafka: cfg.Kafka}
	if reader.Token, err = readToken(c.TokenFile); err != nil {
		return err
	}
	tolerances, err := readTolerances(c.Tolerance)
	if err != nil {
		return err
	}
	report, err := c.look(ctx, reader, tolerances)
	if err != nil {
		return err
	}
	if len(report.Unexplained) > 0 && c.Again > 0 && (compare.Running(c.Left) || compare.Running(c.Right)) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.Again):
		}
		second, err := c.look(ctx, reader, tolerances)
		if err != nil {
			return err
		}
		report = compare.Lasting(report, second)
	}
	if c.JSON {
		err = json.NewEncoder(p.Stdout).Encode(report)
	} else {
		err = compare.Print(p.Stdout, report)
	}
	switch {
	case err != nil:
		return err
	case report.Left == 0 || report.Right == 0:
		return errors.New("one side has no records: nothing was compared")
	case len(report.Unexplained) > 0:
		return &exitError{code: exitFailed}
	}
	return nil
}

// section is the part of the configuration that is needed.
func (c contrast) section() string {
	if strings.HasPrefix(c.Left, "kafka:") || strings.HasPrefix(c.Right, "kafka:") {
		return "kafka"
	}
	return "log"
}

func (c contrast) look(ctx context.Context, r compare.Reader, tolerances []compare.Tolerance) (compare.Report, error) {
	left, err := r.Read(ctx, c.Left)
	if err != nil {
		return compare.Report{}, err
	}
	right, err := r.Read(ctx, c.Right)
	if err != nil {
		return compare.Report{}, err
	}
	return compare.Compare(left, right, tolerances), nil
}

func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := os.ReadFile(name)
	return strings.TrimSpace(string(text)), err
}

func readTolerances(name string) ([]compare.Tolerance, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	list, err := compare.ReadTolerances(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}
