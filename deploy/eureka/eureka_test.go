package eureka_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"msgexchange/deploy/eureka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far longer than anything takes here.
const patience = 20 * time.Second

// server is a Eureka that can be told to misbehave; each call is heard.
type server struct {
	*httptest.Server
	calls chan string
	code  atomic.Int32 // what it answers instead of doing its work; 0: it works

	mu       sync.Mutex
	statuses map[string]string // by instance
	bodies   []string
}

func open(t *testing.T) *server {
	t.Helper()
	s := &server{calls: make(chan string, 1000), statuses: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.calls <- r.Method + " " + r.URL.String() }()
	if code := s.code.Load(); code != 0 {
		w.WriteHeader(int(code))
		return
	}
	_, instance, _ := strings.Cut(r.URL.Path, "/apps/MSGEXCHANGEAPI")
	instance = strings.TrimPrefix(instance, "/")
	switch r.Method {
	case http.MethodPost:
		s.bodies = append(s.bodies, string(body))
		var doc struct {
			Instance struct{ InstanceID, Status string }
		}
		_ = json.Unmarshal(body, &doc)
		s.statuses[doc.Instance.InstanceID] = doc.Instance.Status
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPut:
		if s.statuses[instance] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
	case http.MethodDelete:
		delete(s.statuses, instance)
	}
}

func (s *server) known() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for k, v := range s.statuses {
		out[k] = v
	}
	return out
}

func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.statuses)
}

// heard waits for a call of this method.
func (s *server) heard(t *testing.T, method string) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case call := <-s.calls:
			if strings.HasPrefix(call, method+" ") {
				return call
			}
		case <-timeout:
			require.Fail(t, "never heard "+method)
		}
	}
}

// client runs one with its log; end ends it and waits.
func client(t *testing.T, ready func() bool, servers ...string) (log *bytes.Buffer, end func()) {
	t.Helper()
	log = &bytes.Buffer{}
	c := eureka.Client{
		Servers: servers, Renew: 20 * time.Millisecond, Ready: ready, Log: slog.New(slog.NewTextHandler(log, nil)),
		Instance: eureka.Instance{Service: "msgexchangeapi", Pod: "pod-1", Host: "10.0.0.7", IP: "10.0.0.7", Port: 8080},
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	end = func() {
		stop()
		select {
		case <-done:
		case <-time.After(patience):
			require.Fail(t, "it does not end")
		}
	}
	t.Cleanup(end)
	return log, end
}

const id = "10.0.0.7:msgexchangeapi:pod-1"

func TestRegistersRenewsAndLeaves(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, end := client(t, nil, s.URL+"/eureka/")
	require.Equal(t, "POST /eureka/apps/MSGEXCHANGEAPI", s.heard(t, "POST"))
	require.Equal(t, map[string]string{id: "UP"}, s.known())
	require.Equal(t, "PUT /eureka/apps/MSGEXCHANGEAPI/"+id+"?status=UP", s.heard(t, "PUT"))
	s.heard(t, "PUT")
	end()
	s.heard(t, "DELETE")
	require.Empty(t, s.known())
	var doc map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.bodies[0]), &doc))
	i := doc["instance"]
	require.Equal(t, "http://10.0.0.7:8080/readyz", i["healthCheckUrl"])
	require.Equal(t, map[string]any{"$": 8080.0, "@enabled": "true"}, i["port"])
	require.Equal(t, "msgexchangeapi", i["vipAddress"])
	require.Len(t, s.bodies, 1, "registered once")
}

// A server that restarted knows nobody: who sends a heartbeat is registered again.
func TestForgotten(t *testing.T) {
	t.Parallel()
	s := open(t)
	client(t, nil, s.URL)
	s.heard(t, "POST")
	s.forget()
	s.heard(t, "POST")
	require.Equal(t, map[string]string{id: "UP"}, s.known())
}

// Errors are told once, not at each heartbeat, and the registration comes when the server does.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.code.Store(http.StatusInternalServerError)
	log, end := client(t, nil, s.URL)
	for range 5 {
		s.heard(t, "POST")
	}
	s.code.Store(0)
	s.heard(t, "PUT")
	end()
	require.Equal(t, 1, strings.Count(log.String(), "eureka away"), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "eureka back"))
	require.Empty(t, s.known())
}

// The next server is asked when one is away or talks nonsense, and no password gets into the log.
func TestNextServer(t *testing.T) {
	t.Parallel()
	s := open(t)
	nonsense := open(t)
	nonsense.code.Store(http.StatusTeapot)
	_, end := client(t, nil, "http://user:secret@127.0.0.1:1/eureka", nonsense.URL, s.URL)
	s.heard(t, "POST")
	s.heard(t, "PUT")
	end()
	require.Empty(t, s.known())

	other := open(t)
	other.code.Store(http.StatusTeapot)
	log, end := client(t, nil, "http://user:secret@127.0.0.1:1/eureka", other.URL)
	other.heard(t, "POST")
	other.heard(t, "POST")
	end()
	require.Contains(t, log.String(), "eureka away")
	require.NotContains(t, log.String(), "secret")
}

// Who is not ready is DOWN, and UP when it is.
func TestFollowsReadiness(t *testing.T) {
	t.Parallel()
	s := open(t)
	var ready atomic.Bool
	client(t, ready.Load, s.URL)
	s.heard(t, "POST")
	require.Equal(t, map[string]string{id: "DOWN"}, s.known())
	ready.Store(true)
	s.heard(t, "POST")
	require.Equal(t, map[string]string{id: "UP"}, s.known())
}

// A server that takes calls and never answers holds up nothing: the end comes.
func TestHangingServer(t *testing.T) {
	t.Parallel()
	hang, begun := make(chan struct{}), make(chan struct{}, 100)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun <- struct{}{}; <-hang }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(hang) })
	_, end := client(t, nil, s.URL)
	<-begun
	end()
}

// A registration whose answer was not heard before the end is taken back too.
func TestLeavesWhatWasUnderWay(t *testing.T) {
	t.Parallel()
	hang, begun, left := make(chan struct{}), make(chan struct{}, 10), make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			left <- struct{}{}
			return
		}
		begun <- struct{}{}
		<-hang
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(hang) })
	_, end := client(t, nil, s.URL)
	<-begun
	end()
	require.Len(t, left, 1)
}

func TestOwnAddress(t *testing.T) {
	t.Parallel()
	address, err := eureka.OwnAddress("http://user:pw@127.0.0.1:8761/eureka")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", address)
	_, err = eureka.OwnAddress("http://[::bad")
	require.Error(t, err)
}
