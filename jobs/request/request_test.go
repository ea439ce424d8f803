package request_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"msgexchange/jobs/message"
	"msgexchange/jobs/request"
)

const stands message.Kind = "RQRD-SLST"

var policy = request.Policy{Schedule: time.Minute, List: 30 * time.Second, ByKind: map[message.Kind]time.Duration{"RQRD-AIRL": 45 * time.Second}}

// at is seconds after the start of the tests.
func at(seconds float64) time.Time {
	return time.Date(2026, 3, 18, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func TestMay(t *testing.T) {
	t.Parallel()
	got := map[request.State][]request.State{}
	for _, from := range request.AllStates() {
		for _, to := range request.AllStates() {
			if from.May(to) {
				got[from] = append(got[from], to)
			}
		}
	}
	require.Equal(t, map[request.State][]request.State{
		request.Registered: {request.Sent, request.Done, request.Expired},
		request.Sent:       {request.Waiting, request.Done, request.Expired},
		request.Waiting:    {request.Done, request.Expired},
	}, got)
	for _, s := range request.AllStates() {
		require.Equal(t, s.Open(), len(got[s]) > 0, "%s", s)
	}
}

// Timeouts run from sent_at, before that from registered_at; a mailbox whose clock is behind shortens none.
func TestPlan(t *testing.T) {
	t.Parallel()
	r := func(id int64, kind message.Kind, state request.State, registered, sent float64) request.Request {
		q := request.Request{ID: id, Kind: kind, State: state, RegisteredAt: at(registered)}
		if state != request.Registered {
			q.SentAt = at(sent)
		}
		return q
	}
	noted := func(q request.Request, when float64) request.Request { q.NotedAt = at(when); return q }
	for name, c := range map[string]struct {
		open                []request.Request
		now                 float64
		expire, send, watch []int64
		next                float64 // -1: none
	}{
		"nothing is open":          {nil, 0, nil, nil, nil, -1},
		"a new one is sent":        {[]request.Request{r(1, stands, request.Registered, 0, 0)}, 1, nil, []int64{1}, nil, 30},
		"in order":                 {[]request.Request{r(7, stands, request.Registered, 2, 0), r(3, request.Schedule, request.Registered, 1, 0)}, 3, nil, []int64{3, 7}, nil, 32},
		"never sent":               {[]request.Request{r(1, stands, request.Registered, 0, 0)}, 30, []int64{1}, nil, nil, -1},
		"sent late counts anew":    {[]request.Request{r(1, stands, request.Sent, 0, 20)}, 49.9, nil, nil, []int64{1}, 50},
		"list after 30 s":          {[]request.Request{r(1, stands, request.Sent, 0, 20)}, 50, []int64{1}, nil, nil, -1},
		"schedule after 60 s":      {[]request.Request{r(1, request.Schedule, request.Waiting, 0, 20)}, 79.9, nil, nil, nil, 80},
		"schedule over":            {[]request.Request{r(1, request.Schedule, request.Waiting, 0, 20)}, 80, []int64{1}, nil, nil, -1},
		"a kind's own":             {[]request.Request{r(1, "RQRD-AIRL", request.Waiting, 0, 0)}, 44.9, nil, nil, nil, 45},
		"mailbox clock ahead":      {[]request.Request{noted(r(1, stands, request.Waiting, 0, 3600), 2)}, 31.9, nil, nil, nil, 32},
		"ahead, and over":          {[]request.Request{noted(r(1, stands, request.Sent, 0, 3600), 2)}, 32, []int64{1}, nil, nil, -1},
		"found after a crash":      {[]request.Request{noted(r(1, stands, request.Sent, 0, 5), 25)}, 35, []int64{1}, nil, nil, -1},
		"mailbox clock behind":     {[]request.Request{r(1, stands, request.Waiting, 0, -3600)}, 29.9, nil, nil, nil, 30},
		"closed ones are left out": {[]request.Request{r(1, stands, request.Done, 0, 0), r(2, stands, request.Expired, 0, 0)}, 99, nil, nil, nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := policy.Plan(c.open, at(c.now))
			ids := func(all []request.Request) (out []int64) {
				for _, q := range all {
					out = append(out, q.ID)
				}
				return out
			}
			require.Equal(t, c.expire, ids(a.Expire), "expire")
			require.Equal(t, c.send, ids(a.Send), "send")
			require.Equal(t, c.watch, ids(a.Watch), "watch")
			if c.next < 0 {
				require.True(t, a.Next.IsZero())
			} else {
				require.Equal(t, at(c.next), a.Next)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	open := request.Request{ID: 9, Kind: stands, State: request.Waiting, SEQN: 17, SentAt: at(10.9)}
	old := request.Request{ID: 5, Kind: stands, State: request.Expired, SEQN: 16, SentAt: at(1)}
	answered := request.Request{ID: 6, Kind: stands, State: request.Done, SEQN: 15, SentAt: at(2)}
	began := request.Request{ID: 9, Kind: stands, State: request.Registered, SEQN: 17, SendingAt: at(10)}
	never := request.Request{ID: 4, Kind: stands, State: request.Expired, SEQN: 14}
	for name, c := range map[string]struct {
		newest []request.Request
		seqn   int64
		dttm   float64
		how    request.How
		why    string
	}{
		"our number":                     {[]request.Request{old, open}, 17, 11, request.Exact, ""},
		"another number":                 {[]request.Request{old, open}, 410063, 11, request.Inferred, ""},
		"the very second":                {[]request.Request{open}, 410063, 10, request.Inferred, ""},
		"our number, made before":        {[]request.Request{open}, 17, 9, "", "it was made before the open request was sent"},
		"made before":                    {[]request.Request{open}, 410063, 9, "", "it was made before the open request was sent"},
		"nobody asked":                   {nil, 17, 11, "", "no request of its kind is open"},
		"expired":                        {[]request.Request{old}, 16, 11, "", "no request of its kind is open"},
		"twice":                          {[]request.Request{answered}, 15, 11, "", "no request of its kind is open"},
		"of the expired one":             {[]request.Request{old, open}, 16, 11, "", "it answers a request that is closed"},
		"of the answered one":            {[]request.Request{answered, open}, 15, 11, "", "it answers a request that is closed"},
		"a number never on its way":      {[]request.Request{never, open}, 14, 11, request.Inferred, ""},
		"not sent":                       {[]request.Request{{ID: 9, State: request.Registered, SEQN: 17}}, 17, 11, "", "the open request has not been sent yet"},
		"quicker than our note":          {[]request.Request{began}, 410063, 10, request.Inferred, ""},
		"quicker than our note, exactly": {[]request.Request{began}, 17, 10, request.Exact, ""},
		"made before we began":           {[]request.Request{began}, 17, 9, "", "it was made before the open request was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := request.Match(c.newest, message.Meta{SEQN: c.seqn, DTTM: at(c.dttm)})
			require.Equal(t, c.how, v.How)
			require.Equal(t, c.why, v.Why)
			require.Equal(t, c.how != "", v.Matched())
			if v.Matched() {
				require.Equal(t, int64(9), v.Request.ID)
			}
		})
	}
}

// Whatever happens in whatever order, a closed request never changes, at most one of the kind is open, each answer counts
// for one request at most, and none that was made before its request was sent counts at all.
func TestLife(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []request.Request
		now, answered := 0.0, map[int64]bool{}
		move := func(id int64, to request.State) {
			r := &all[id]
			require.True(t, r.State.May(to), "%s to %s", r.State, to)
			r.State = to
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(*rapid.T) {
				for _, r := range all {
					if r.State.Open() {
						move(r.ID, request.Expired)
					}
				}
				all = append(all, request.Request{ID: int64(len(all)), Kind: stands, State: request.Registered, SEQN: int64(len(all) + 1), RegisteredAt: at(now)})
			},
			"work": func(t *rapid.T) {
				a := policy.Plan(all, at(now))
				for _, r := range a.Expire {
					move(r.ID, request.Expired)
				}
				for _, r := range a.Send {
					move(r.ID, request.Sent)
					all[r.ID].SentAt = at(now)
				}
				for _, r := range a.Watch {
					move(r.ID, request.Waiting)
				}
			},
			"answer": func(t *rapid.T) {
				made := now - rapid.Float64Range(0, 50).Draw(t, "ago")
				seqn := rapid.Int64Range(1, int64(len(all)+2)).Draw(t, "seqn")
				newest := all[max(0, len(all)-request.Newest):]
				v := request.Match(append([]request.Request(nil), newest...), message.Meta{SEQN: seqn, DTTM: at(made)})
				if !v.Matched() {
					return
				}
				require.False(t, answered[v.Request.ID])
				require.False(t, at(made).Before(v.Request.SentAt.Truncate(time.Second)))
				answered[v.Request.ID] = true
				move(v.Request.ID, request.Done)
			},
			"": func(t *rapid.T) {
				now += rapid.Float64Range(0, 20).Draw(t, "later")
				open := 0
				for _, r := range all {
					if r.State.Open() {
						open++
					}
				}
				require.LessOrEqual(t, open, 1)
			},
		})
	})
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to float64
		why      string
	}{
		"a minute":      {60, 120, ""},
		"three days":    {0, 3 * 86400, ""},
		"longer":        {0, 3*86400 + 60, "longer than"},
		"nothing":       {60, 60, "before"},
		"the wrong way": {120, 60, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := request.Window{From: at(c.from), To: at(c.to)}.Validate()
			require.Equal(t, c.why == "", err == nil)
			if err != nil {
				require.Contains(t, err.Error(), c.why)
			}
		})
	}
	require.Error(t, request.Window{From: at(1)}.Validate())
}
