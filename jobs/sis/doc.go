// Package sis reads and writes the airport database's XML (dictionary, whole). Everything a message kind means on the
// wire is data in the catalogue: adding a kind is adding an entry. Pure: no I/O, no clock; the airport's zone is passed in.
package sis
