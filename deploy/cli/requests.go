package cli

import (
	"time"

	"msgexchange/jobs/message"
	jobsrequest "msgexchange/jobs/request"
	"msgexchange/workers/refdata"
	"msgexchange/workers/request"
)

// requester makes the desk where requests are registered, and the role that sends them.
func (n *node) requester() *request.Requests {
	c := n.config.Request
	kinds := make([]message.Kind, len(c.Kinds))
	for i, k := range c.Kinds {
		kinds[i] = message.Kind(k)
	}
	policy := jobsrequest.Policy{Schedule: c.TimeoutRQFD, List: c.TimeoutRQRD, ByKind: map[message.Kind]time.Duration{}}
	for k, timeout := range c.Timeouts {
		policy.ByKind[message.Kind(k)] = timeout
	}
	request.NewMetrics(n.metrics, n.pool, n.store, kinds)
	n.metrics.MustRegister(refdata.NewAge(n.pool, n.store, time.Now))
	n.desk = &request.Desk{
		Site: request.Site{Kinds: kinds, SNDR: c.SNDR, Zone: n.zone},
		Pool: n.pool, Store: n.store, Waker: n.waker, Now: time.Now,
	}
	return request.New(request.Config{
		Policy: policy, RoutingRQFD: c.RoutingRQFD, RoutingRQRD: c.RoutingRQRD, Shadow: !n.live(),
	}, request.Deps{Pool: n.pool, Store: n.store, Mailbox: n.mailbox, Log: n.log, Now: time.Now})
}
