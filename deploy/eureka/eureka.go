// Package eureka registers a pod with a Eureka server, for neighbours who find their services there (four REST calls; the one
// Go client there is has not been kept since 2021). Registration is a favour: a server that is away or talks nonsense never
// holds up a start, the work or a stop.
package eureka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Instance is who is registered.
type Instance struct {
	Service string // the application and its VIP
	Pod     string // unique among its instances
	Host    string // where others reach it: a name or an address
	IP      string
	Port    int
}

// Client keeps an instance registered.
type Client struct {
	Servers  []string // base URLs, the first that answers is asked; with user and password if need be
	Instance Instance
	Renew    time.Duration // between heartbeats; the server forgets who misses three
	// Ready says whether the instance is UP; else it is registered as DOWN. nil: always.
	Ready func() bool
	HTTP  *http.Client // nil: one with a timeout
	Log   *slog.Logger
	Now   func() time.Time // default time.Now

	status string // as registered; empty: it is not
	tried  bool   // some server may know it, also when its answer was not heard
	away   bool   // the last try failed
}

// The client's times.
const (
	callTimeout = 5 * time.Second // of one call to one server
	endTimeout  = 2 * time.Second // of all that is done at the end
	glance      = 2 * time.Second // between looks whether the state has changed
	missed      = 3               // heartbeats after which a server forgets
)

// What Eureka calls the states of an instance.
const (
	up   = "UP"
	down = "DOWN"
)

// Run registers, renews and, when ctx ends, takes the registration back. It returns soon after that whatever the servers do.
func (c *Client) Run(ctx context.Context) {
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: callTimeout}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	tick := time.NewTicker(min(c.Renew, glance))
	defer tick.Stop()
	var last time.Time
	for {
		if now := c.Now(); c.status != c.state() || now.Sub(last) >= c.Renew {
			c.beat(ctx)
			last = now
		}
		select {
		case <-ctx.Done():
			c.leave(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		}
	}
}

// beat registers who is not registered, or whose state has changed, and renews the others.
func (c *Client) beat(ctx context.Context) {
	err := c.renew(ctx)
	if errors.Is(err, errUnknown) {
		err = c.register(ctx)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && !c.away:
		c.Log.WarnContext(ctx, "eureka away", "error", err.Error())
	case err == nil && c.away:
		c.Log.InfoContext(ctx, "eureka back")
	}
	c.away = err != nil
}

// errUnknown says that the server does not know the instance in its state of now: it has restarted, or was never told.
var errUnknown = errors.New("the server does not know the instance")

func (c *Client) renew(ctx context.Context) error {
	if c.status != c.state() {
		return errUnknown
	}
	return c.call(ctx, http.MethodPut, "/"+url.PathEscape(c.id())+"?status="+c.status, nil)
}

func (c *Client) register(ctx context.Context) error {
	state := c.state()
	body, err := json.Marshal(map[string]any{"instance": c.describe(state)})
	if err != nil {
		return err
	}
	c.tried = true
	if err := c.call(ctx, http.MethodPost, "", body); err != nil {
		return err
	}
	c.status = state
	c.Log.InfoContext(ctx, "eureka registered", "instance", c.id(), "status", state)
	return nil
}

// leave takes the registration back.
func (c *Client) leave(ctx context.Context) {
	if !c.tried {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := c.call(ctx, http.MethodDelete, "/"+url.PathEscape(c.id()), nil); err != nil && !errors.Is(err, errUnknown) {
		c.Log.WarnContext(ctx, "eureka not left", "error", err.Error())
	}
}

func (c *Client) state() string {
	if c.Ready == nil || c.Ready() {
		return up
	}
	return down
}

func (c *Client) id() string {
	return c.Instance.Host + ":" + c.Instance.Service + ":" + c.Instance.Pod
}

// describe is the instance in Eureka's words.
func (c *Client) describe(state string) map[string]any {
	i := c.Instance
	base := "http://" + net.JoinHostPort(i.Host, strconv.Itoa(i.Port))
	port := func(n int, enabled bool) map[string]any {
		return map[string]any{"$": n, "@enabled": strconv.FormatBool(enabled)}
	}
	now := c.Now().UnixMilli()
	const https = 443
	return map[string]any{
		"instanceId": c.id(), "app": strings.ToUpper(i.Service), "vipAddress": i.Service, "secureVipAddress": i.Service,
		"hostName": i.Host, "ipAddr": i.IP, "port": port(i.Port, true), "securePort": port(https, false),
		"status": state, "homePageUrl": base + "/", "statusPageUrl": base + "/readyz", "healthCheckUrl": base + "/readyz",
		"dataCenterInfo":       map[string]any{"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"},
		"leaseInfo":            map[string]any{"renewalIntervalInSecs": int(c.Renew.Seconds()), "durationInSecs": int(missed * c.Renew.Seconds())},
		"lastUpdatedTimestamp": strconv.FormatInt(now, 10), "lastDirtyTimestamp": strconv.FormatInt(now, 10),
		"metadata": map[string]string{"pod": i.Pod},
	}
}

// call asks the servers one after the other until one has an answer; 404 is one.
func (c *Client) call(ctx context.Context, method, below string, body []byte) error {
	var errs []error
	for n, server := range c.Servers {
		err := c.ask(ctx, method, strings.TrimSuffix(server, "/")+"/apps/"+url.PathEscape(strings.ToUpper(c.Instance.Service))+below, body)
		if err == nil || errors.Is(err, errUnknown) {
			return err
		}
		errs = append(errs, fmt.Errorf("server %d: %w", n+1, err))
	}
	return errors.Join(errs...)
}

func (c *Client) ask(ctx context.Context, method, address string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return hidden(err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return hidden(err)
	}
	defer func() { _ = resp.Body.Close() }()
	const enough = 64 << 10 // the connection is used again when the answer was short
	_, _ = io.CopyN(io.Discard, resp.Body, enough)
	switch {
	case resp.StatusCode == http.StatusNotFound && method != http.MethodPost:
		return errUnknown
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("%s answered %s", method, resp.Status)
	}
	return nil
}

// hidden takes the address out of an error: it may hold a password.
func hidden(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return fmt.Errorf("%s: %w", strings.ToUpper(ue.Op), ue.Err)
	}
	return err
}

// OwnAddress is the address of this machine as the server at base would see it.
func OwnAddress(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", hidden(err)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	conn, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), port)) //nolint:noctx // nothing is sent: it only finds the way
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}
