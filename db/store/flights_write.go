package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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

// flightsAtOnce bounds a statement that saves flights: one schedule may bring 70,000, and neither may a statement take half a
// minute, nor the server wait for seconds until it is written.
const flightsAtOnce = 500

// SaveFlights writes flights, each at most once, by FLID, in at most three statements for 500 of them. Whoever sends them holds
// the head's fence.
func (s *Store) SaveFlights(saves []Save) Writes {
	saves = slices.SortedFunc(slices.Values(saves), func(a, b Save) int { return cmp.Compare(a.After.FLID, b.After.FLID) })
	return func(yield func(Write, error) bool) {
		for some := range slices.Chunk(saves, flightsAtOnce) {
			if !yield(s.saveSome(some)) {
				return
			}
		}
	}
}

func (s *Store) saveSome(saves []Save) (Write, error) {
	var rows pgq.UpsertFlightsParams
	lists := map[string]*changedList{}
	for _, save := range saves {
		s.appendFlight(&rows, save.After)
		for _, name := range save.Lists {
			if kept(name) {
				continue
			}
			if lists[name] == nil {
				lists[name] = &changedList{}
			}
			if err := lists[name].add(save.After, name, s.zone); err != nil {
				return nil, err
			}
		}
	}
	gone, come := listParams(lists)
	return func(ctx context.Context, tx pgx.Tx) error {
		if err := s.q.UpsertFlights(ctx, tx, rows); err != nil {
			return fmt.Errorf("save flights: %w", db.Classify(err))
		}
		if len(lists) == 0 {
			return nil
		}
		if err := s.q.DeleteEntries(ctx, tx, gone); err != nil {
			return fmt.Errorf("replace lists of flights: %w", db.Classify(err))
		}
		if err := s.q.InsertEntries(ctx, tx, come); err != nil {
			return fmt.Errorf("save lists of flights: %w", db.Classify(err))
		}
		return nil
	}, nil
}

// listParams are the lists whose entries go, and the entries that come.
func listParams(lists map[string]*changedList) (gone pgq.DeleteEntriesParams, come pgq.InsertEntriesParams) {
	gone = pgq.DeleteEntriesParams{
		Psdt: lists["psdt"].of(), Gtdt: lists["gtdt"].of(), Ckdt: lists["ckdt"].of(), Cldt: lists["cldt"].of(),
		Chdt: lists["chdt"].of(), Abtm: lists["abtm"].of(), Chot: lists["chot"].of(), Srvt: lists["srvt"].of(),
		Dely: lists["dely"].of(), Vipf: lists["vipf"].of(), Rout: lists["rout"].of(), Erut: lists["erut"].of(),
	}
	come = pgq.InsertEntriesParams{
		Psdt: lists["psdt"].text(), Gtdt: lists["gtdt"].text(), Ckdt: lists["ckdt"].text(), Cldt: lists["cldt"].text(),
		Chdt: lists["chdt"].text(), Abtm: lists["abtm"].text(), Chot: lists["chot"].text(), Srvt: lists["srvt"].text(),
		Dely: lists["dely"].text(), Vipf: lists["vipf"].text(), Rout: lists["rout"].text(), Erut: lists["erut"].text(),
	}
	return gone, come
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

// appendFlight adds a row of flight_schd.
func (s *Store) appendFlight(p *pgq.UpsertFlightsParams, f *flight.Flight) {
	p.Flids = append(p.Flids, f.FLID)
	p.OperationDays = append(p.OperationDays, string(f.OperationDay))
	p.StateVersions = append(p.StateVersions, f.Version)
	p.LastMsgIds = append(p.LastMsgIds, f.LastMessage.ID)
	p.LastGenerations = append(p.LastGenerations, f.LastMessage.Generation)
	p.CreatedMsgIds = append(p.CreatedMsgIds, f.CreatedBy.ID)
	p.CreatedGenerations = append(p.CreatedGenerations, f.CreatedBy.Generation)
	p.DeletedMsgIds = append(p.DeletedMsgIds, f.DeletedBy.ID)
	p.DeletedGenerations = append(p.DeletedGenerations, f.DeletedBy.Generation)
	p.DeletedAts = append(p.DeletedAts, f.DeletedAt)
	p.UpdatedAts = append(p.UpdatedAts, f.UpdatedAt)
	p.Published = append(p.Published, f.Published)
	p.Flnos = append(p.Flnos, f.FLNO())
	p.Mvins = append(p.Mvins, f.Scalars["mvin"].Str)
	p.Sodts = append(p.Sodts, f.Scalars["sodt"].Time())
	p.Maids = append(p.Maids, f.Master())
	p.Stnds = append(p.Stnds, f.Scalars["stnd"].Str)
	p.Mafls = append(p.Mafls, arrayText(f.MAFL))
	p.Abdgs = append(p.Abdgs, f.ABDG)
	p.Scalars = append(p.Scalars, string(sis.AppendScalars(nil, f.Scalars, s.zone)))
	p.StandOps = append(p.StandOps, string(appendStandOps(nil, f, s.zone)))
	p.Exts = append(p.Exts, string(appendExt(nil, f.Ext)))
	p.Provenances = append(p.Provenances, string(flight.AppendProvenance(nil, f)))
}

// arrayText writes a text[] as PostgreSQL reads it.
func arrayText(all []string) string {
	if len(all) == 0 {
		return "{}"
	}
	escapes := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = `"` + escapes.Replace(s) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
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
