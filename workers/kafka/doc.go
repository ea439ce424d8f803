// Package kafka puts records into topics through sarama, in order and without gaps (design §7; K19, K20, K21).
//
// A Producer serves one topic and sends one batch a partition at a time: records are numbered for the broker's idempotence
// check, a batch whose answer is not known is repeated unchanged, and nothing later of a partition leaves before what is
// ahead of it is in the log. sarama's own AsyncProducer cannot promise that. It cuts batches where it likes, and once it
// gives one up (a sequence error, a leader that cannot be found, a refusal) it sends the next one of the same partition
// before the caller hears of it. So sarama brings connections, security, metadata, leaders, partitioner and wire format
// here, and the order of produce requests, which is our promise, is ours: session.go.
//
// It knows nothing of the outbox's tables and never decides whether an event is DEAD; that is workers/deliver.
package kafka
