package systemtest

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// cutKafka makes the broker hang up on every request until it is told otherwise.
func (w *world) cutKafka(off bool) {
	w.busOff.Store(off)
	if !off {
		return
	}
	w.kafka.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		if !w.busOff.Load() {
			return nil, nil, false
		}
		w.kafka.KeepControl()
		return nil, errors.New("the broker is away"), true
	})
}
