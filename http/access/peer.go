package access

import (
	"net/http"
	"net/netip"
	"strings"
)

// Peer is the address the request comes from: the other end of the connection or, as long as that is a listed proxy, the
// one before it in X-Forwarded-For, read from the right over all lines of the header. Whatever stands left of the first
// address that is no listed proxy was written by the caller and is not looked at. The zero Addr when a listed proxy passed
// on something that is no address.
func Peer(r *http.Request, proxies []netip.Prefix) netip.Addr {
	peer := parseAddr(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && contains(proxies, peer); i-- {
		hop := strings.TrimSpace(hops[i])
		if hop == "" && i == 0 {
			break // no header at all: the proxy speaks for itself
		}
		peer = parseAddr(hop)
	}
	return peer
}

// parseAddr reads an address with or without port; the zero Addr when it is none.
func parseAddr(s string) netip.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

func contains(ranges []netip.Prefix, a netip.Addr) bool {
	for _, p := range ranges {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
