// Package flight decides what a message does to the flights it names (design §6). Pure: no I/O, no clock, no globals;
// the same view and message always give the same outcome.
package flight
