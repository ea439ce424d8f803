package head

import (
	"msgexchange/db/lease"
	"msgexchange/jobs/flight"
)

// memory is the flights that the head has read or written, kept from batch to batch: reading a flight and its lists again is a
// tenth of what a message costs (decision 0022). It is true for as long as nobody else can have written flights: one hold of
// the role, in one unbroken chain of its transactions.
type memory struct {
	fence *lease.Fence
	chain int64
	set   *flight.Set
	known map[int64]bool // FLIDs that set tells of, also that there is no such flight; with masters and children all the way
}

// mostRemembered flights are kept, some 10 kB each; then everything is forgotten and begun anew.
const mostRemembered = 2000

// recall gives what is still true inside f's transaction.
func (m *memory) recall(f *lease.Fence) *memory {
	if chain := f.Chain(); m.set == nil || m.fence != f || m.chain != chain {
		*m = memory{fence: f, chain: chain, set: flight.NewSet(), known: map[int64]bool{}}
	}
	return m
}

// full says that it is more than is kept until the next batch, which after a schedule of a night may be hours away.
func (m *memory) full() bool { return len(m.known) > mostRemembered }

// unknown are those of the flights named that must be read.
func (m *memory) unknown(flids []int64) (missing []int64) {
	for _, flid := range flids {
		if !m.known[flid] {
			missing = append(missing, flid)
		}
	}
	return missing
}

// learn takes in what was read of the flights asked for: they, their masters and their children, all the way.
func (m *memory) learn(asked []int64, read []*flight.Flight) {
	for _, f := range read {
		if !m.known[f.FLID] {
			m.known[f.FLID] = true
			m.set.Put(f)
		}
	}
	for _, flid := range asked {
		m.known[flid] = true
	}
}

// forget is called when what was decided did not come to a commit, or may not have.
func (m *memory) forget() { *m = memory{} }
