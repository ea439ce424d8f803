package store

import (
	"context"
	"iter"

	"github.com/jackc/pgx/v5"
)

// Write is one statement, ready to be sent.
type Write func(ctx context.Context, tx pgx.Tx) error

// Writes makes statements one after the other, each when it is asked for; an error is the last.
type Writes = iter.Seq2[Write, error]

// WriteAll sends statements in their order. While the server works on one the next is made, so that a batch takes as long as the
// slower of the two; no more than one waits in memory. A panic while one is made is the caller's.
func WriteAll(ctx context.Context, tx pgx.Tx, all ...Writes) error {
	type made struct {
		write    Write
		err      error
		panicked any
	}
	ready, stop := make(chan made), make(chan struct{})
	defer close(stop)
	hand := func(m made) (more bool) {
		select {
		case ready <- m:
			return true
		case <-stop:
			return false
		}
	}
	go func() {
		defer close(ready)
		defer func() {
			if p := recover(); p != nil {
				hand(made{panicked: p})
			}
		}()
		for _, some := range all {
			for write, err := range some {
				if !hand(made{write: write, err: err}) || err != nil {
					return
				}
			}
		}
	}()
	for m := range ready {
		switch {
		case m.panicked != nil:
			panic(m.panicked)
		case m.err != nil:
			return m.err
		}
		if err := m.write(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}
