package sis

import (
	"errors"
	"fmt"
	"strings"

	"msgexchange/jobs/message"
)

// IgnoreRules are the kinds a site does not want: "TYPE-STYP" or "TYPE-*", without regard to case (dictionary 12).
type IgnoreRules []string

// Match gives the first rule that names the kind, as it was configured.
func (r IgnoreRules) Match(kind message.Kind) (rule string, ok bool) {
	typ, styp, _ := strings.Cut(string(kind), "-")
	for _, rule := range r {
		t, s, _ := strings.Cut(strings.TrimSpace(rule), "-")
		if covers(t, typ) && covers(s, styp) {
			return strings.TrimSpace(rule), true
		}
	}
	return "", false
}

// Validate names every rule that is not of the form TYPE-STYP or TYPE-*.
func (r IgnoreRules) Validate() error {
	var problems []error
	for _, rule := range r {
		t, s, found := strings.Cut(strings.TrimSpace(rule), "-")
		if !found || t == "" || s == "" {
			problems = append(problems, fmt.Errorf("ignore rule %q is not TYPE-STYP or TYPE-*", rule))
		}
	}
	return errors.Join(problems...)
}

func covers(pattern, code string) bool { return pattern == "*" || strings.EqualFold(pattern, code) }
