package flight_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"msgexchange/jobs/flight"
	"msgexchange/jobs/sis"
)

// shared is a world with master 10 and its children 11 (ZH4907) and 12 (SC4907), and master 20.
func shared(t *testing.T) *world {
	t.Helper()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD",
		w.fltr(t, 11, "ZH4907", "18 11:40", sis.Fields{"maid": number(10)}),
		w.fltr(t, 10, "CA4907", "18 11:40", nil),
		w.fltr(t, 12, "SC4907", "18 11:40", sis.Fields{"maid": number(10)}),
		w.fltr(t, 20, "MU9512", "18 19:00", nil),
	)
	require.Equal(t, []string{"SC4907", "ZH4907"}, w.Flight(10).MAFL, "a child may stand before its master")
	require.EqualValues(t, 1, w.Flight(10).Version)
	return w
}

// told shows each change as FLID, op, version and through whom it is announced.
func told(o flight.Outcome) [][4]any {
	var all [][4]any
	for _, c := range o.Changes {
		var master int64
		if c.Master != nil {
			master = c.Master.FLID
		}
		all = append(all, [4]any{c.After.FLID, c.Op, c.After.Version, master})
	}
	return all
}

// K27: what happens to a child is told through its master.
func TestK27_ChildIsAnnouncedThroughItsMaster(t *testing.T) {
	t.Parallel()
	w := shared(t)
	require.False(t, w.Flight(11).Published)
	require.True(t, w.Flight(10).Published)

	o := w.must(t, 2, "FLOP-STND", flop(11, sis.Fields{"stnd": text("208")}))
	require.Equal(t, [][4]any{{int64(11), flight.Update, int64(2), int64(10)}}, told(o))
	require.EqualValues(t, 1, w.Flight(10).Version, "the master's version moves only with mafl")
}

func TestMasterAfterItsChildren(t *testing.T) {
	t.Parallel()
	w := setup(t)
	o := w.must(t, 1, "SCHD-ADFT", w.fltr(t, 11, "ZH4907", "18 11:40", sis.Fields{"maid": number(10)}))
	require.Equal(t, [][4]any{{int64(11), flight.Create, int64(1), int64(0)}}, told(o), "no master yet: announced by itself")
	require.False(t, w.Flight(11).Published)

	o = w.must(t, 2, "SCHD-ADFT", w.fltr(t, 10, "CA4907", "18 11:40", nil))
	require.Equal(t, [][4]any{{int64(10), flight.Create, int64(1), int64(0)}}, told(o))
	require.Equal(t, []any{"ZH4907"}, w.show(t, 10)["mafl"])
}

func TestMAFLFollowsTheChildren(t *testing.T) {
	t.Parallel()
	w := shared(t)

	o := w.must(t, 2, "SCHD-ADFT", w.fltr(t, 11, "ZH4999", "18 11:40", nil))
	require.Equal(t, [][4]any{{int64(11), flight.Update, int64(2), int64(10)}, {int64(10), flight.Update, int64(2), int64(0)}}, told(o))
	require.Equal(t, map[string]any{"mafl": []any{"SC4907", "ZH4999"}}, w.fields(t, o.Changes[1]))

	o = w.must(t, 3, "SCHD-ADFT", w.fltr(t, 11, "ZH4999", "18 11:40", sis.Fields{"maid": number(20)}))
	require.Equal(t, [][4]any{
		{int64(11), flight.Update, int64(3), int64(20)},
		{int64(20), flight.Update, int64(2), int64(0)},
		{int64(10), flight.Update, int64(3), int64(0)},
	}, told(o), "both masters change")
	require.Equal(t, []string{"SC4907"}, w.Flight(10).MAFL)
	require.Equal(t, []string{"ZH4999"}, w.Flight(20).MAFL)

	o = w.must(t, 4, "SCHD-ADFT", w.fltr(t, 11, "ZH4999", "18 11:40", sis.Fields{"maid": {}}))
	require.Equal(t, [][4]any{{int64(11), flight.Update, int64(4), int64(0)}, {int64(20), flight.Update, int64(3), int64(0)}}, told(o))
	require.True(t, w.Flight(11).Published, "independent now")
	require.Equal(t, map[string]any{"mafl": nil}, w.fields(t, o.Changes[1]))

	w.must(t, 5, "SCHD-ADFT", w.fltr(t, 20, "MU9512", "18 19:00", sis.Fields{"maid": number(11)}))
	require.False(t, w.Flight(20).Published)
	require.Equal(t, []string{"MU9512"}, w.Flight(11).MAFL)
}

// K27: a deleted child leaves its master's list, and the master is announced.
func TestK27_DeletedChild(t *testing.T) {
	t.Parallel()
	w := shared(t)
	o := w.must(t, 2, "FLOP-FDEL", fdel(11))
	require.Equal(t, [][4]any{{int64(11), flight.Delete, int64(2), int64(10)}, {int64(10), flight.Update, int64(2), int64(0)}}, told(o))
	require.Equal(t, []string{"SC4907"}, w.Flight(10).MAFL)
}

// K27: a deleted master takes its children with it, each announced.
func TestK27_DeletedMaster(t *testing.T) {
	t.Parallel()
	w := shared(t)
	o := w.must(t, 2, "FLOP-FDEL", fdel(10))
	require.Equal(t, [][4]any{
		{int64(10), flight.Delete, int64(2), int64(0)},
		{int64(11), flight.Delete, int64(2), int64(0)},
		{int64(12), flight.Delete, int64(2), int64(0)},
	}, told(o))
	require.Equal(t, []int{0, 1, 0}, []int{o.Created, o.Updated, o.Unchanged})

	w.must(t, 3, "SCHD-ADFT", w.fltr(t, 10, "CA4907", "18 11:40", nil))
	require.Empty(t, w.Flight(10).MAFL, "its children stay gone")
	w.must(t, 4, "SCHD-ADFT", w.fltr(t, 11, "ZH4907", "18 11:40", sis.Fields{"maid": number(10)}))
	require.Equal(t, []string{"ZH4907"}, w.Flight(10).MAFL)
}

func TestDeletedMasterDetachesItsChildren(t *testing.T) {
	t.Parallel()
	w := shared(t)
	w.opt.DetachOnMasterDelete = true
	o := w.must(t, 2, "FLOP-FDEL", fdel(10))
	require.Equal(t, [][4]any{
		{int64(10), flight.Delete, int64(2), int64(0)},
		{int64(11), flight.Update, int64(2), int64(0)},
		{int64(12), flight.Update, int64(2), int64(0)},
	}, told(o))
	require.Equal(t, map[string]any{"maid": nil}, w.fields(t, o.Changes[1]))
	require.True(t, w.Flight(12).Published)
}

// A late deletion of a master is about the children it had then.
func TestLateDeletionOfMasterSparesNewerChildren(t *testing.T) {
	t.Parallel()
	w := shared(t)
	w.must(t, 5, "SCHD-ADFT", w.fltr(t, 12, "SC4907", "18 11:40", sis.Fields{"maid": number(10)}))
	w.must(t, 4, "FLOP-FDEL", fdel(10))
	require.False(t, w.Flight(11).Live())
	require.True(t, w.Flight(12).Live())
}

// A schedule of a child that is older than the deletion of its master: the child would have gone with it.
func TestLateChildOfDeletedMasterNeverLives(t *testing.T) {
	t.Parallel()
	w := shared(t)
	w.must(t, 5, "FLOP-FDEL", fdel(10))
	o := w.must(t, 4, "SCHD-ADFT", w.fltr(t, 13, "HU4907", "18 11:40", sis.Fields{"maid": number(10)}))
	require.Equal(t, [][4]any{{int64(13), flight.Op(""), int64(1), int64(0)}}, told(o), "kept, so that nothing older brings it back, and told to nobody")
	require.Equal(t, pos(5), w.Flight(13).DeletedBy)
	require.Empty(t, w.must(t, 3, "SCHD-ADFT", w.fltr(t, 13, "HU4907", "18 11:40", nil)).Changes)
	require.False(t, w.Flight(13).Live())

	o = w.must(t, 4, "SCHD-ADFT", w.fltr(t, 20, "MU9512", "18 19:00", sis.Fields{"maid": number(10)}))
	require.Equal(t, [][4]any{{int64(20), flight.Delete, int64(2), int64(0)}}, told(o), "a flight that stood for itself")

	o = w.must(t, 6, "SCHD-ADFT", w.fltr(t, 13, "HU4907", "18 11:40", sis.Fields{"maid": number(10)}))
	require.Equal(t, [][4]any{{int64(13), flight.Create, int64(2), int64(0)}}, told(o), "newer than the deletion")
}

// A child that a schedule newer than its master's deletion brought stays, for itself.
func TestLateDeletionOfMasterUnlinksWhatStays(t *testing.T) {
	t.Parallel()
	w := shared(t)
	w.must(t, 5, "SCHD-ADFT", w.fltr(t, 12, "SC4907", "18 11:40", nil))
	o := w.must(t, 4, "FLOP-FDEL", fdel(10))
	require.Equal(t, flight.Update, o.Changes[2].Op)
	require.Equal(t, map[string]any{"maid": nil}, w.fields(t, o.Changes[2]))
	require.True(t, w.Flight(12).Published)
}

// A loop of code shares is told, once for the link that closes it.
func TestCodeShareLoops(t *testing.T) {
	t.Parallel()
	w := shared(t)
	require.Empty(t, w.must(t, 2, "SCHD-ADFT", w.fltr(t, 20, "MU9512", "18 19:00", sis.Fields{"maid": number(20)})).Loops, "that is no child")
	require.Empty(t, w.must(t, 3, "SCHD-ADFT", w.fltr(t, 20, "MU9512", "18 19:00", sis.Fields{"maid": number(11)})).Loops, "a child of a child")
	require.Equal(t, []int64{10}, w.must(t, 4, "SCHD-ADFT", w.fltr(t, 10, "CA4907", "18 11:40", sis.Fields{"maid": number(20)})).Loops)
	require.Empty(t, w.must(t, 5, "SCHD-ADFT", w.fltr(t, 10, "CA4908", "18 11:40", nil)).Loops, "not again")
	require.Empty(t, w.must(t, 6, "SCHD-ADFT", w.fltr(t, 12, "SC4907", "18 11:40", sis.Fields{"maid": number(11)})).Loops, "below the loop, not in it")
	require.Empty(t, w.must(t, 7, "SCHD-ADFT", w.fltr(t, 10, "CA4908", "18 11:40", sis.Fields{"maid": {}})).Loops)
	require.True(t, w.Flight(10).Published, "opened again")
}

func TestOddLinks(t *testing.T) {
	t.Parallel()
	w := shared(t)

	o := w.must(t, 2, "SCHD-ADFT", w.fltr(t, 20, "MU9512", "18 19:00", sis.Fields{"maid": number(20)}))
	require.Equal(t, []string{"maid"}, o.Changes[0].Fields)
	require.Empty(t, w.Flight(20).MAFL, "nobody is his own child")
	require.True(t, w.Flight(20).Published)

	// 10 becomes a child of its own child: each is announced through the other, and neither stands for itself.
	w.must(t, 3, "SCHD-ADFT", w.fltr(t, 10, "CA4907", "18 11:40", sis.Fields{"maid": number(11)}))
	require.Equal(t, []string{"CA4907"}, w.Flight(11).MAFL)
	o = w.must(t, 4, "FLOP-FDEL", fdel(10))
	require.Equal(t, [][4]any{
		{int64(10), flight.Delete, int64(3), int64(0)},
		{int64(11), flight.Delete, int64(3), int64(0)},
		{int64(12), flight.Delete, int64(2), int64(0)},
	}, told(o))
}

// K27: flights are told apart by FLID, never by number.
func TestK27_TwoLegsStayTwo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.must(t, 1, "SCHD-DNLD", w.fltr(t, 7, "CA4907", "18 11:40", nil), w.fltr(t, 8, "CA4907", "18 11:40", nil))
	w.must(t, 2, "FLOP-FDEL", fdel(7))
	require.False(t, w.Flight(7).Live())
	require.True(t, w.Flight(8).Live())
}

// watched is flights that count how much of them is looked at: flights asked for by number, and children given out.
type watched struct {
	*flight.Set
	looks int
}

func (w *watched) Flight(flid int64) *flight.Flight {
	w.looks++
	return w.Set.Flight(flid)
}

func (w *watched) Children(maid int64) []*flight.Flight {
	children := w.Set.Children(maid)
	w.looks += len(children)
	return children
}

// One message may name tens of thousands of children of one master, or hang as many onto the end of a long chain: what it
// looks at must grow with it, not with its square (K23: 55,000 children in ten megabytes took longer than minutes).
func TestManyChildrenCostOneLookEach(t *testing.T) {
	t.Parallel()
	const flights, looksEach = 1000, 12
	chain := func(i int64) int64 { return i - 1 }
	star := func(i int64) int64 { return min(i-1, 1) }
	for name, c := range map[string]struct {
		master  func(i int64) int64 // before the message
		message func(w *world) sis.Message
	}{
		"children of one master change their numbers": {star, func(w *world) sis.Message {
			var all []sis.Record
			for i := int64(2); i <= flights; i++ {
				all = append(all, w.fltr(t, i, "CA9", "18 11:40", nil))
			}
			return w.message("SCHD-DNLD", all...)
		}},
		"children of the end of a chain": {chain, func(w *world) sis.Message {
			var all []sis.Record
			for i := int64(flights + 1); i <= 2*flights; i++ {
				all = append(all, w.fltr(t, i, "CA9", "18 11:40", sis.Fields{"maid": number(flights)}))
			}
			return w.message("SCHD-DNLD", all...)
		}},
		"the master of all goes":       {star, func(w *world) sis.Message { return w.message("FLOP-FDEL", fdel(1)) }},
		"the master of the chain goes": {chain, func(w *world) sis.Message { return w.message("FLOP-FDEL", fdel(1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			var all []sis.Record
			for i := int64(1); i <= flights; i++ {
				all = append(all, w.fltr(t, i, "CA1", "18 11:40", sis.Fields{"maid": number(c.master(i))}))
			}
			w.must(t, 1, "SCHD-DNLD", all...)
			view := &watched{Set: w.Set}
			o, err := flight.Decide(view, c.message(w), pos(2), at(2), w.opt)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(o.Changes), flights)
			require.Less(t, view.looks, looksEach*2*flights)
		})
	}
}
