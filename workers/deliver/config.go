package deliver

import (
	"errors"
	"fmt"
	"time"

	"msgexchange/jobs/fault"
	"msgexchange/jobs/message"
	"msgexchange/jobs/retry"
)

// Config of the role msg; keys under "delivery.".
type Config struct {
	// Batch is the most events sent and marked together. 1 … 10000. Default 500.
	Batch int `koanf:"batch"`
}

// SchdConfig of the role schd; keys under "schd.".
type SchdConfig struct {
	// FlushPeriod is how long the oldest waiting event waits for newer ones of its flight. 0 … 1m. Default 3s.
	FlushPeriod time.Duration `koanf:"flush-period"`
	// FlushLimit is the number of waiting events at which nothing waits any more, and the most sent together. 1 … 10000. Default 500.
	FlushLimit int `koanf:"flush-limit"`
}

const maxBatch = 10000

// Defaults of the role msg.
func Defaults() Config { return Config{Batch: 500} }

// SchdDefaults of the role schd.
func SchdDefaults() SchdConfig { return SchdConfig{FlushPeriod: 3 * time.Second, FlushLimit: 500} }

// Validate lists everything that is wrong.
func (c Config) Validate() error {
	if c.Batch < 1 || c.Batch > maxBatch {
		return fmt.Errorf("delivery.batch: %d is not within 1 … %d", c.Batch, maxBatch)
	}
	return nil
}

// Validate lists everything that is wrong.
func (c SchdConfig) Validate() error {
	var errs []error
	if c.FlushPeriod < 0 || c.FlushPeriod > time.Minute {
		errs = append(errs, fmt.Errorf("schd.flush-period: %s is not within 0 … 1m", c.FlushPeriod))
	}
	if c.FlushLimit < 1 || c.FlushLimit > maxBatch {
		errs = append(errs, fmt.Errorf("schd.flush-limit: %d is not within 1 … %d", c.FlushLimit, maxBatch))
	}
	return errors.Join(errs...)
}

// nextTry is when an event may be tried again after its attempts-th refusal, or zero when it has had enough: 1, 2, 4, 8 s
// and then DEAD, as with messages.
func nextTry(attempts int, now time.Time) time.Time {
	v := retry.Defaults().Failed(fault.Infra, attempts, now, now)
	if v.State == message.Dead {
		return time.Time{}
	}
	return v.Next
}
