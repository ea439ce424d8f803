package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"msgexchange/deploy/config"
	"msgexchange/jobs/sis"
)

// decode looks at messages without doing anything with them.
type decode struct {
	Config string   `help:"YAML file with the configuration, for operation-day.zone and ignore.rules." placeholder:"FILE" type:"path"`
	Files  []string `arg:"" name:"file" help:"Files with one message each, in any character set it declares; - is standard input."`
}

// Help says what the command prints.
func (decode) Help() string {
	return `Needs nothing. Prints one line of JSON a file: outcome OK with kind, meta and body; or MALFORMED, PROTOCOL, UNSUPPORTED
or IGNORED with the error. All rules are checked that need no flight to be known.

Ends with 0 when every outcome is OK or IGNORED, else with 1.`
}

// memoryLimit, in bytes, is what the collector keeps below while it can, so that the whole process needs less than 200 MB,
// whatever 10 MB hold. It only ever costs time.
const memoryLimit = 160 << 20

// Run decodes each file, whatever became of those before.
func (d decode) Run(p *Process) error {
	cfg, err := config.Load(config.Sources{File: d.Config, Environ: p.Environ, Uses: []string{"operation-day", "ignore"}})
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(cfg.OperationDay.Zone)
	if err != nil {
		return fmt.Errorf("operation-day.zone: %w", err)
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	options := sis.Options{Zone: zone, Ignore: cfg.Ignore.Rules}

	var refused bool
	for _, name := range d.Files {
		raw, err := read(name, p.Stdin)
		if err != nil {
			return err
		}
		var message sis.Message
		text, err := sis.TextOf(raw, "")
		if err == nil {
			message, err = sis.Decode(text, options)
		}
		refused = refused || err != nil
		if err := sis.WriteDecoded(p.Stdout, message, err, zone); err != nil {
			return err
		}
		fmt.Fprintln(p.Stdout)
	}
	if refused {
		return &exitError{code: exitFailed}
	}
	return nil
}

// read reads a message, and no more of it than tells that it is too long.
func read(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return readSome(stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	return readSome(file)
}

// readSome stops where text of any encoding is longer than a message may be. A file's room is taken at once: growing to
// 10 MB leaves three times that behind.
func readSome(r io.Reader) ([]byte, error) {
	const most = 2*sis.MaxBytes + 2
	var b bytes.Buffer
	if file, ok := r.(*os.File); ok {
		if about, err := file.Stat(); err == nil {
			b.Grow(int(min(about.Size(), most)) + bytes.MinRead)
		}
	}
	_, err := b.ReadFrom(io.LimitReader(r, most))
	return b.Bytes(), err
}
