package outbox

// Record is an event as it goes to Kafka.
type Record struct {
	EventID int64
	Key     string // never blank
	Value   []byte // nil is a tombstone: null on the wire
	Headers []Header
}

// Header is one header of a Record.
type Header struct {
	Key, Value string
}

// Fate is what became of a Record that was handed to Kafka.
type Fate string

// The closed set of fates. The zero Fate is Waiting.
const (
	Waiting  Fate = ""         // not known to be in the topic, through no fault of its own: broker away, or behind a record that failed
	Acked    Fate = "ACKED"    // in the topic, acknowledged by all in-sync replicas
	Refused  Fate = "REFUSED"  // the broker will not have this very record for its content
	TooLarge Fate = "TOOLARGE" // Refused because even alone it is larger than the topic accepts; that will not change
)

// AllFates lists the fates.
func AllFates() []Fate { return []Fate{Waiting, Acked, Refused, TooLarge} }

// Term is what one worker at a time sends the records of a target under. A partition that holds a record of a term takes
// none of an older one any more, if both are of the same producer: brokers compare the epochs (decision 0009).
type Term struct {
	Cluster  string // whose producer ids these are
	Producer int64  // given by the cluster, once
	Epoch    int16  // given by us, ascending
}

// Result is the Fate of one Record. Err is nil exactly when it is Acked; it is a fault.Outage when it is Waiting.
type Result struct {
	Fate      Fate
	Partition int32
	Offset    int64 // valid when Acked
	Err       error
}

// Place is where a record lies in a topic.
type Place struct {
	Partition int32
	Offset    int64
}
