// Package access decides who may do what over HTTP: where a caller comes from, what token it holds, how often it may come
// (contract §8.8, §8.26, K28). Everything not granted is refused; a proxy is believed only when it is listed.
package access

import "fmt"

// Role is what a caller may do; each role includes the ones before it.
type Role string

// The closed set of roles, lowest first. Anyone is no role of a token: it marks what needs no permission at all.
const (
	Anyone   Role = ""
	Reader   Role = "reader"   // looks
	Sender   Role = "sender"   // may also put messages and requests in
	Operator Role = "operator" // may also change how things run
)

// AllRoles lists the roles a token can have, lowest first.
func AllRoles() []Role { return []Role{Reader, Sender, Operator} }

// Includes says that r may do what need asks for.
func (r Role) Includes(need Role) bool { return r.rank() >= need.rank() }

func (r Role) rank() int {
	switch r {
	case Anyone:
		return 0
	case Reader:
		return 1
	case Sender:
		return 2
	case Operator:
		return 3
	}
	return 0
}

func parseRole(s string) (Role, error) {
	for _, r := range AllRoles() {
		if s == string(r) {
			return r, nil
		}
	}
	return Anyone, fmt.Errorf("role %q is none of %v", s, AllRoles())
}
