// Package deliver takes events from the outbox to Kafka (design §7): the role msg sends every event in the order of their
// ids, the role schd the newest state of each flight.
//
// What holds for both: read, send, mark. Nothing is sent inside a transaction, everything is marked under the role's fence,
// and only an acknowledged event becomes SENT. A worker that dies in between sends its batch again, with the same event ids,
// unless the topic's tail shows that it is there. An event is charged, and may end DEAD, only when the broker refuses that
// very record; a broker that is away costs time and nothing else (K19, K20, K22).
package deliver
