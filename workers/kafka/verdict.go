package kafka

import "github.com/IBM/sarama"

// verdict is what a broker's answer means for the batch it is about.
type verdict int

const (
	appended verdict = iota // the batch is in the log
	mistaken                // the broker takes it for another one that it has
	repeat                  // not now, or not known: the same batch again, under the same numbers
	renumber                // the broker's count of our batches differs from ours: the same records under a new identity
	tooLarge                // more bytes than the topic takes
	refused                 // the broker will not have the content
	denied                  // nothing about the records, and nothing that repeating soon would change
)

// judge reads the error code of one partition's answer. An unknown code blames no record, nor does one that says that bytes
// changed on their way (InvalidMessage): the checksum is ours.
func judge(code sarama.KError) verdict {
	switch code {
	case sarama.ErrNoError:
		return appended
	case sarama.ErrDuplicateSequenceNumber: // it has one under these numbers, and cannot say which
		return mistaken
	case sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID, sarama.ErrInvalidProducerEpoch,
		sarama.ErrInvalidProducerIDMapping, sarama.ErrProducerFenced:
		return renumber
	case sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge:
		return tooLarge
	case sarama.ErrInvalidRecord:
		return refused
	case sarama.ErrInvalidTimestamp, // ours is the time of sending: a clock is wrong, here or there
		sarama.ErrTopicAuthorizationFailed, sarama.ErrClusterAuthorizationFailed, sarama.ErrInvalidTopic, sarama.ErrPolicyViolation,
		sarama.ErrUnsupportedVersion, sarama.ErrUnsupportedForMessageFormat, sarama.ErrInvalidRequiredAcks, sarama.ErrInvalidRequest:
		return denied
	}
	return repeat
}
