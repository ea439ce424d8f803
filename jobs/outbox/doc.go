// Package outbox makes the events that tell the world what a message did, and plans their delivery (design §7; contract §5,
// §8.15, §8.22). Events are rows first and Kafka records later; a record says nothing that its row does not. Pure: no I/O,
// no clock; ids come from the database.
package outbox
