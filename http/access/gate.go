package access

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"msgexchange/http/problem"
)

// Gate tells who is calling. Safe for concurrent use.
type Gate struct {
	Trusted []netip.Prefix // peers that are readers and senders without a token
	Proxies []netip.Prefix // peers whose X-Forwarded-For counts
	Tokens  *Tokens
}

// Caller is who makes a request.
type Caller struct {
	Name    string     // of the token; empty without one
	Role    Role       // granted by the token, or by being a trusted peer
	Peer    netip.Addr // where the request comes from; invalid when a proxy named no readable address
	Trusted bool       // Peer is in the trusted ranges
	Refused bool       // credentials were sent and nobody knows them
}

// Identify never fails: a caller about whom nothing is known has no role.
func (g *Gate) Identify(r *http.Request) Caller {
	peer := Peer(r, g.Proxies)
	c := Caller{Peer: peer, Trusted: contains(g.Trusted, peer)}
	name, secret, sent := credentials(r)
	if !sent {
		if c.Trusted {
			c.Role = Sender
		}
		return c
	}
	var known bool
	c.Name, c.Role, known = g.Tokens.Find(name, secret)
	c.Refused = !known
	return c
}

// credentials reads Bearer, or Basic as browsers send it: the token's name and the token.
func credentials(r *http.Request) (name, secret string, sent bool) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return "", "", false
	}
	if user, password, ok := r.BasicAuth(); ok {
		return user, password, true
	}
	scheme, rest, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", "", true
	}
	return "", strings.TrimSpace(rest), true
}

// May gives nil when the caller may do what need asks for, else 401 (say who you are) or 403 (it is not for you).
func (c Caller) May(need Role) *problem.Error {
	switch {
	case need == Anyone:
		return nil
	case c.Refused:
		return problem.New(problem.Unauthorized, "the token is not known")
	case c.Role.Includes(need):
		return nil
	case c.Name == "":
		return problem.New(problem.Unauthorized, "a token with the role "+string(need)+" is needed")
	}
	return problem.New(problem.Forbidden, "the role "+string(need)+" is needed, the token has "+string(c.Role))
}

// Key is the caller's place in the rate limit: the token, else the address, of IPv6 the network a site is given.
func (c Caller) Key() string {
	if c.Name != "" {
		return "token " + c.Name
	}
	if c.Peer.Is6() {
		const siteBits = 64
		if site, err := c.Peer.Prefix(siteBits); err == nil {
			return site.String()
		}
	}
	return c.Peer.String()
}

// Actor is the caller in the audit: the token's name, else "peer".
func (c Caller) Actor() string {
	if c.Name != "" {
		return c.Name
	}
	return "peer"
}

// LogValue shows name, role and address.
func (c Caller) LogValue() slog.Value {
	return slog.GroupValue(slog.String("actor", c.Actor()), slog.String("role", string(c.Role)), slog.String("peer", c.Peer.String()))
}

type callerKey struct{}

// With puts the caller into ctx for the handlers.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From gives the caller that With put in; without one, a caller who may do nothing.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
