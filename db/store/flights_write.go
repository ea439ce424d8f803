package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"msgexchange/db"
	"msgexchange/db/pgq"
	"msgexchange/jobs/flight"
	"msgexchange/jobs/sis"
)

// Save is a flight to be stored as it is now.
type Save struct {
	After *flight.Flight
	// Lists names the lists whose entries differ from the stored ones, each once; only these are written anew.
	Lists []string
}

// maxFlightsAtOnce bounds a statement of SaveFlights: one schedule may bring 70,000, and neither may a statement take half a
// minute, nor the server wait for seconds until it is written.
const maxFlightsAtOnce = 5000

// SaveFlights writes flights, each at most once, by FLID, in at most three statements for 5,000 of them. The caller holds the
// head's fence.
func (s *Store) SaveFlights(ctx context.Context, tx pgx.Tx, saves []Save) error {
	saves = slices.SortedFunc(slices.Values(saves), func(a, b Save) int { return cmp.Compare(a.After.FLID, b.After.FLID) })
	for some := range slices.Chunk(saves, maxFlightsAtOnce) {
		if err := s.saveSome(ctx, tx, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) saveSome(ctx context.Context, tx pgx.Tx, saves []Save) error {
	rows := make([]flightRow, len(saves))
	lists := map[string]*changedList{}
	for i, save := range saves {
		rows[i] = s.flightRow(save.After)
		for _, name := range save.Lists {
			if kept(name) {
				continue
			}
			if lists[name] == nil {
				lists[name] = &changedList{}
			}
			if err := lists[name].add(save.After, name, s.zone); err != nil {
				return err
			}
		}
	}
	text, err := plainJSON(rows)
	if err != nil {
		return fmt.Errorf("save flights: %w", err)
	}
	if err := s.q.UpsertFlights(ctx, tx, text); err != nil {
		return fmt.Errorf("save flights: %w", db.Classify(err))
	}
	return s.saveLists(ctx, tx, lists)
}

func (s *Store) saveLists(ctx context.Context, tx pgx.Tx, lists map[string]*changedList) error {
	if len(lists) == 0 {
		return nil
	}
	err := s.q.DeleteEntries(ctx, tx, pgq.DeleteEntriesParams{
		Psdt: lists["psdt"].of(), Gtdt: lists["gtdt"].of(), Ckdt: lists["ckdt"].of(), Cldt: lists["cldt"].of(),
		Chdt: lists["chdt"].of(), Abtm: lists["abtm"].of(), Chot: lists["chot"].of(), Srvt: lists["srvt"].of(),
		Dely: lists["dely"].of(), Vipf: lists["vipf"].of(), Rout: lists["rout"].of(), Erut: lists["erut"].of(),
	})
	if err != nil {
		return fmt.Errorf("replace lists of flights: %w", db.Classify(err))
	}
	err = s.q.InsertEntries(ctx, tx, pgq.InsertEntriesParams{
		Psdt: lists["psdt"].text(), Gtdt: lists["gtdt"].text(), Ckdt: lists["ckdt"].text(), Cldt: lists["cldt"].text(),
		Chdt: lists["chdt"].text(), Abtm: lists["abtm"].text(), Chot: lists["chot"].text(), Srvt: lists["srvt"].text(),
		Dely: lists["dely"].text(), Vipf: lists["vipf"].text(), Rout: lists["rout"].text(), Erut: lists["erut"].text(),
	})
	if err != nil {
		return fmt.Errorf("save lists of flights: %w", db.Classify(err))
	}
	return nil
}

// changedList is what one list gets in a save. A nil one is a list that no flight changed.
type changedList struct {
	flids []int64
	rows  []byte // JSON objects, commas between them
}

func (c *changedList) add(f *flight.Flight, name string, zone *time.Location) error {
	spec, ok := sis.ListByName(name)
	if !ok {
		return fmt.Errorf("save flight %d: %s: no such list", f.FLID, name)
	}
	c.flids = append(c.flids, f.FLID)
	for _, e := range f.Lists[name] {
		// {"psno":1,…} becomes {"flid":15,"psno":1,…}
		c.rows = strconv.AppendInt(append(separate(c.rows), `{"flid":`...), f.FLID, 10)
		entry := len(c.rows)
		c.rows = sis.AppendEntry(c.rows, spec, e, zone)
		c.rows[entry] = ','
	}
	return nil
}

func (c *changedList) of() []int64 {
	if c == nil {
		return nil
	}
	return c.flids
}

func (c *changedList) text() []byte {
	if c == nil {
		return []byte("[]")
	}
	return slices.Concat([]byte{'['}, c.rows, []byte{']'})
}

// flightRow is a row of flight_schd; the names are the columns'.
type flightRow struct {
	FLID              int64           `json:"flid"`
	OperationDay      flight.Day      `json:"operation_day"`
	StateVersion      int64           `json:"state_version"`
	LastMsgID         int64           `json:"last_msg_id"`
	LastGeneration    int32           `json:"last_generation"`
	CreatedMsgID      int64           `json:"created_msg_id"`
	CreatedGeneration int32           `json:"created_generation"`
	DeletedMsgID      int64           `json:"deleted_msg_id"`
	DeletedGeneration int32           `json:"deleted_generation"`
	DeletedAt         *time.Time      `json:"deleted_at"`
	UpdatedAt         time.Time       `json:"updated_at"`
	Published         bool            `json:"published"`
	FLNO              string          `json:"flno"`
	MVIN              string          `json:"mvin"`
	SODT              time.Time       `json:"sodt"`
	MAID              *int64          `json:"maid"`
	STND              *string         `json:"stnd"`
	MAFL              []string        `json:"mafl"`
	ABDG              *string         `json:"abdg"`
	Scalars           json.RawMessage `json:"scalars"`
	StandOps          json.RawMessage `json:"stand_ops"`
	Ext               json.RawMessage `json:"ext"`
	Provenance        json.RawMessage `json:"provenance"`
}

func (s *Store) flightRow(f *flight.Flight) flightRow {
	return flightRow{
		FLID: f.FLID, OperationDay: f.OperationDay, StateVersion: f.Version,
		LastMsgID: f.LastMessage.ID, LastGeneration: f.LastMessage.Generation,
		CreatedMsgID: f.CreatedBy.ID, CreatedGeneration: f.CreatedBy.Generation,
		DeletedMsgID: f.DeletedBy.ID, DeletedGeneration: f.DeletedBy.Generation,
		DeletedAt: timeOrNil(f.DeletedAt), UpdatedAt: f.UpdatedAt, Published: f.Published,
		FLNO: f.FLNO(), MVIN: f.Scalars["mvin"].Str, SODT: f.Scalars["sodt"].Time(),
		MAID: orNone(f.Master()), STND: orNil(f.Scalars["stnd"].Str), MAFL: orNoText(f.MAFL), ABDG: orNil(f.ABDG),
		Scalars: sis.AppendScalars(nil, f.Scalars, s.zone), StandOps: appendStandOps(nil, f, s.zone),
		Ext: appendExt(nil, f.Ext), Provenance: flight.AppendProvenance(nil, f),
	}
}

// kept says that a list is in stand_ops, not in a table of its own.
func kept(list string) bool { return list == "psht" || list == "tipt" }

// appendStandOps writes the lists kept by stand in the form in which flight_lists gives the others.
func appendStandOps(dst []byte, f *flight.Flight, zone *time.Location) []byte {
	specs := sis.ListSpecs()
	dst = append(dst, '{')
	for i := range specs {
		spec := &specs[i]
		if !kept(spec.Name) || len(f.Lists[spec.Name]) == 0 {
			continue
		}
		dst = append(appendName(dst, spec.Name), '[')
		for _, e := range f.Lists[spec.Name] {
			dst = sis.AppendEntry(separate(dst), spec, e, zone)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendExt writes what the catalogue does not know byte for byte as it came.
func appendExt(dst []byte, ext map[string]json.RawMessage) []byte {
	dst = append(dst, '{')
	for _, name := range slices.Sorted(maps.Keys(ext)) {
		dst = append(appendName(dst, name), ext[name]...)
	}
	return append(dst, '}')
}

// appendName begins a member of an object.
func appendName(dst []byte, name string) []byte {
	return append(sis.AppendJSON(separate(dst), sis.Value{Type: sis.Text, Str: name}, nil), ':')
}

// separate appends the comma that belongs after an element.
func separate(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != '[' {
		return append(dst, ',')
	}
	return dst
}

// plainJSON is json.Marshal that leaves <, > and & as they are: ext must come back byte for byte.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// orNone is nil for 0.
func orNone(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// orNoText is an empty list for nil.
func orNoText(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
