package cli

import (
	"cmp"
	"context"
	"net"
	"os"
	"time"

	"msgexchange/deploy/eureka"
	"msgexchange/http/health"
)

// register keeps the pod registered with Eureka until ctx ends, when there is one; addr is where its HTTP listens.
func (n *node) register(ctx context.Context, addr net.Addr, state *health.Cache) {
	c := n.config.Eureka
	if len(c.URLs) == 0 {
		return
	}
	client := eureka.Client{
		Servers: c.URLs, Renew: c.RenewInterval, Log: n.log, Now: time.Now,
		Ready:    func() bool { return state.Report().Status != health.Down },
		Instance: eureka.Instance{Service: n.config.ServiceName, Pod: n.name, Host: c.Host, Port: c.Port},
	}
	if listens, ok := addr.(*net.TCPAddr); ok && c.Port == 0 {
		client.Instance.Port = listens.Port
	}
	client.Instance.IP = ownAddress(c.URLs[0])
	client.Instance.Host = cmp.Or(c.Host, client.Instance.IP)
	client.Run(ctx)
}

// ownAddress is this machine's on the way to the server, else its name.
func ownAddress(server string) string {
	if address, err := eureka.OwnAddress(server); err == nil {
		return address
	}
	name, _ := os.Hostname() // empty is as good as nothing
	return name
}
