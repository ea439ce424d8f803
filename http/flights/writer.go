package flights

import (
	"errors"
	"net/http"
	"time"
)

// writer writes the items of a JSON array in pieces. Nothing is written, and so nothing decided about the status, before
// the first piece is full or the end is reached.
type writer struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  []byte
	some bool // at least one item is in
	end  time.Time
}

// A reader has a short time for each piece: meanwhile our snapshot waits, idle in its transaction, and PostgreSQL ends
// those after 5 s. One that takes every piece slowly has a minute for all.
const (
	pieceBytes    = 64 << 10
	pieceTimeout  = 3 * time.Second
	streamTimeout = time.Minute
)

func newWriter(w http.ResponseWriter, before string) *writer {
	return &writer{
		w: w, ctl: http.NewResponseController(w),
		buf: append(make([]byte, 0, 2*pieceBytes), before...),
		end: time.Now().Add(streamTimeout),
	}
}

func (w *writer) add(item func([]byte) []byte) error {
	if w.some {
		w.buf = append(w.buf, ',')
	}
	w.some = true
	w.buf = item(w.buf)
	if len(w.buf) < pieceBytes {
		return nil
	}
	return w.flush()
}

func (w *writer) close(after string) error {
	w.buf = append(w.buf, after...)
	return w.flush()
}

func (w *writer) flush() error {
	deadline := time.Now().Add(pieceTimeout)
	if w.end.Before(deadline) {
		deadline = w.end
	}
	if err := w.ctl.SetWriteDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	w.w.Header().Set("Content-Type", "application/json")
	_, err := w.w.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}
