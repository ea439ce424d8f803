package cli

import "errors"

// decode looks at messages without doing anything with them.
type decode struct {
	Files []string `arg:"" name:"file" help:"Files with one message each; - is standard input."`
}

// Run prints one JSON document a file.
func (decode) Run(*Process) error { return errors.New("decode: not wired") }
