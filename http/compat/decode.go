package compat

import (
	"encoding/xml"
	"unicode/utf8"

	"msgexchange/jobs/fault"
)

// decode gives the characters of a body that is a well-formed message (contract §8.11).
func decode(body []byte, charset string) (string, error) {
	_ = charset
	if !utf8.Valid(body) {
		return "", fault.New(fault.Malformed, "decode", "not UTF-8")
	}
	var root struct {
		XMLName xml.Name `xml:"MSG"`
	}
	if err := xml.Unmarshal(body, &root); err != nil {
		return "", fault.Wrap(fault.Malformed, "decode", err)
	}
	return string(body), nil
}
