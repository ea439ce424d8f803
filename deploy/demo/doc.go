// Package demo runs the whole system on one machine, with nothing to set up: a private PostgreSQL, a mailbox that speaks
// the MySQL protocol and a Kafka, both in this process, a simulated airport, and the normal workers on top (contract §1).
// At the end it adds up what went in and what came out.
//
// Everything but this file needs the build tag demo, so that no test server can get into the product. The mailbox here is
// no InnoDB: nothing about locks, isolation or holes is proved on it.
package demo
