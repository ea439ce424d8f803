package compat

import (
	"errors"

	"msgexchange/http/problem"
	"msgexchange/jobs/fault"
	"msgexchange/jobs/sis"
)

// decode gives the characters of a body that could be a message: readable in its character set, well-formed, without
// DOCTYPE, with the root MSG, and no larger than the pipeline takes (contract §8.11). META is not looked at.
func decode(body []byte, charset string) (string, error) {
	text, err := sis.TextOf(body, charset)
	switch {
	case charset != "" && errors.Is(err, sis.ErrCharset):
		return "", &problem.Error{Code: problem.UnsupportedMediaType, Detail: fault.Text(err), Err: err}
	case err != nil:
		return "", &problem.Error{Code: problem.MalformedXML, Detail: fault.Text(err), Err: err}
	case len(text) > sis.MaxBytes:
		return "", problem.New(problem.TooLarge, "the message is larger than the pipeline takes")
	}
	if err := sis.WellFormed(text); err != nil {
		return "", &problem.Error{Code: problem.MalformedXML, Detail: fault.Text(err), Err: err}
	}
	return string(text), nil
}
