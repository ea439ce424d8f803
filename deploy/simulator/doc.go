// Package simulator plays the airport database: an endless, reproducible stream of the messages a working day brings
// (dictionary 2, 3, 5 to 8), and a writer that puts them into a mailbox at a rate, with the faults a real sender has.
//
// A [Generator] has no clock and no global randomness: the same [Options] give the same bytes for ever. It knows the wire
// format on its own, as the foreign sender does, so that a mistake in jobs/sis cannot hide in both ends.
//
//	simulator.go  the stream: options, the queue of what happens next, META
//	airport.go    the fixed equipment: airlines, stations, stands, counters
//	timetable.go  the services that fly every day
//	day.go        one day's flights, its schedule download and its rare events
//	turn.go       the life of one turnaround; arrival.go, departure.go, trouble.go its parts
//	record.go     flights as XML; xml.go the XML
//	writer.go     the stream into a mailbox; table.go the mailbox as a MySQL table
//	respond.go    the answers to requests
//	drill.go      incidents for those on call
package simulator
