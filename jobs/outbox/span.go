package outbox

// Span is a range of event ids, both ends in it, in which events of one target wait. There may be fewer than came into it, also
// none any more, and ids of other targets lie between.
type Span struct {
	First, Last int64
	Amount      int64 // events that came into it, at least 1
}

// nearby is how many ids may lie between two spans that are read as one: the other target's events of the same batch, and ids that
// a transaction took which was taken back.
const nearby = 32

// Runs joins spans, which come in the order of their First, into runs that ascend and do not touch, until they promise want events.
// Nothing up to after is in them. What waits after it and up to the Last of the last run is in the runs, and nowhere else: spans
// that are not used begin later.
func Runs(spans []Span, after, want int64) (runs []Span, used int) {
	var promised int64
	for _, s := range spans {
		s.First = max(s.First, after+1)
		open := len(runs) - 1
		switch {
		case s.Last < s.First: // read already
			used++
			continue
		case open >= 0 && s.First <= runs[open].Last: // overlapping runs would give an event twice
			runs[open].Last = max(runs[open].Last, s.Last)
			runs[open].Amount += s.Amount
		case promised >= want:
			return runs, used
		case open >= 0 && s.First <= runs[open].Last+nearby:
			runs[open].Last = s.Last
			runs[open].Amount += s.Amount
		default:
			runs = append(runs, s)
		}
		promised += s.Amount
		used++
	}
	return runs, used
}
