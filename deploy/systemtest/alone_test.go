package systemtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"msgexchange/deploy/systemtest/rig"
)

// holder says which pod holds a role, and under which epoch.
func (w *world) holder(t *testing.T, role string) (holder string, epoch int64) {
	t.Helper()
	require.NoError(t, w.pg.QueryRow(t.Context(), "SELECT coalesce(max(holder), ''), coalesce(max(epoch), 0) FROM pipeline_lease WHERE role = $1", role).Scan(&holder, &epoch))
	return holder, epoch
}

// kafkaDoor is a way of one pod's own to the broker.
func (w *world) kafkaDoor(t *testing.T) (door, string) {
	t.Helper()
	addr := w.kafka.ListenAddrs()[0]
	p, err := rig.OpenProxy(t.Context(), addr)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	p.Instead(addr)
	return door{p}, "MSGX_KAFKA_BROKERS=" + p.Addr
}

// requireTaken waits until another pod than the one that serves there holds the role under a newer epoch: taken, not handed over.
func (w *world) requireTaken(t *testing.T, role, from string, before int64) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		if holder, epoch := w.holder(t, role); holder == "" || strings.HasPrefix(holder, from) || epoch <= before {
			return fmt.Errorf("%s is held by %q under epoch %d", role, holder, epoch)
		}
		return nil
	})
}

// A pod whose own way to Kafka or to the mailbox carries nothing any more, while connections stay open and the others are fine,
// loses the roles that need it. Nothing is lost, charged or out of order (decision 0023).
func TestPodThatAloneIsCutOff(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string][]string{"kafka": {"msg", "schd"}, "mailbox": {"poll", "backfill"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, viaMailbox, env := w.doors(t, nil)
			viaKafka, brokers := w.kafkaDoor(t)
			w.start(t, "alone", append(env, brokers)...)
			stop := w.traffic(t, 50*time.Millisecond)
			names, epochs := map[string]string{}, map[string]int64{}
			for _, role := range roles {
				eventually(t, time.Minute, func() error {
					if names[role], epochs[role] = w.holder(t, role); names[role] == "" {
						return fmt.Errorf("nobody holds %s", role)
					}
					return nil
				})
				names[role], _, _ = strings.Cut(names[role], "/")
			}
			w.start(t, "other")
			way := map[string]door{"kafka": viaKafka, "mailbox": viaMailbox}[name]
			way.freeze(t)
			frozen := time.Now()
			for _, role := range roles {
				w.requireTaken(t, role, names[role]+"/", epochs[role])
			}
			t.Logf("taken %s after the cut", time.Since(frozen).Round(100*time.Millisecond))
			n := stop()
			w.settled(t, n, time.Minute)
			w.requireExact(t, n)
		})
	}
}

// A pod that is cut off is killed when it has offered its roles and there is nobody yet to take them. The offer outlives it and leaves
// them to the pod that comes; nothing is lost or out of order (decision 0023, O4).
func TestPodThatIsKilledWithItsOffer(t *testing.T) {
	t.Parallel()
	for name, role := range map[string]string{"kafka": "msg", "mailbox": "poll"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, viaMailbox, env := w.doors(t, nil)
			viaKafka, brokers := w.kafkaDoor(t)
			alone := w.start(t, "alone", append(env, brokers)...)
			stop := w.traffic(t, 50*time.Millisecond)
			w.holdsAll(t, alone, time.Minute)
			way := map[string]door{"kafka": viaKafka, "mailbox": viaMailbox}[name]
			way.freeze(t)
			eventually(t, time.Minute, func() error {
				if w.number(t, "SELECT count(*) FROM pipeline_lease WHERE role = $1 AND troubled_at IS NOT NULL", role) == 0 {
					return fmt.Errorf("%s is not offered", role)
				}
				return nil
			})
			holder, epoch := w.holder(t, role)
			alone.kill()
			killed := time.Now()
			w.start(t, "other")
			w.requireTaken(t, role, holder, epoch)
			t.Logf("taken %s after kill -9", time.Since(killed).Round(100*time.Millisecond))
			n := stop()
			w.settled(t, n, time.Minute)
			w.requireExact(t, n)
			require.Zero(t, w.number(t, "SELECT count(*) FROM pipeline_lease WHERE troubled_at IS NOT NULL"), "the offer is over")
		})
	}
}

// A pod with other topics on the same database ends before it sends anything, and says why and what to do.
func TestPodWithOtherTopicsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t, "first")
	w.put(t, schedule(1, 1, flights))
	w.settled(t, 1, time.Minute)
	p := w.start(t, "stranger", "MSGX_KAFKA_TOPIC_PREFIX=trial.")
	require.Equal(t, 1, p.exit(30*time.Second))
	require.Contains(t, p.log.String(), `sends to "msg schd", not "trial.msg trial.schd"`)
	require.Contains(t, p.log.String(), `kafka.renamed-from="msg schd"`)
}
