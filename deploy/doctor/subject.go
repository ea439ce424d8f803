package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"msgexchange/db/mailbox"
	"msgexchange/deploy/config"
	"msgexchange/http/access"
	"msgexchange/jobs/fault"
	"msgexchange/workers/kafka"
)

const live = string(config.Live)

// Topic is one topic of the brokers.
type Topic interface {
	// Check says whether records could be sent to it now.
	Check(ctx context.Context) error
}

// Subject is whom the questions are about.
type Subject struct {
	Config  config.Config
	Pool    *pgxpool.Pool // nil: it cannot be reached, because of
	PoolErr error
	Mailbox *mailbox.Mailbox
	Topics  map[string]Topic // by full name
	Lane    Lane
	Now     func() time.Time
}

// Sections are all questions: PostgreSQL and the lane, the mailbox, Kafka, HTTP.
func (s Subject) Sections() []Section {
	return []Section{s.postgres(), s.mailbox(), s.topic(s.Config.Kafka.MsgTopic()), s.topic(s.Config.Kafka.SchdTopic()), s.callers(), s.http()}
}

func (s Subject) topic(name string) Section {
	return Section{{Name: "kafka topic " + name, AtStart: true, Look: func(ctx context.Context) Finding {
		err := s.Topics[name].Check(ctx)
		switch {
		case errors.Is(err, kafka.ErrTooOld):
			return bad(Refuse, "use brokers of Kafka 2.8 or newer", "%s", fault.Text(err))
		case errors.Is(err, kafka.ErrNoTopic) && s.Config.Kafka.CreateTopics:
			return well("made by the first process that needs it")
		case errors.Is(err, kafka.ErrNoTopic):
			return bad(Fail, "create it, or set kafka.create-topics=true; it is noticed by itself", "%s", fault.Text(err))
		case err != nil:
			return bad(Fail, "check kafka.brokers, kafka.tls.*, kafka.sasl.*, the brokers, and the network between", "%s", fault.Text(err))
		}
		return well("every partition has a leader; the brokers know InitProducerId")
	}}}
}

// callers looks for a trusted network that is the whole world: everybody would read and send without a token.
func (s Subject) callers() Section {
	return Section{{Name: "http callers", AtStart: true, Look: func(context.Context) Finding {
		for _, network := range s.Config.HTTP.TrustedCIDRs {
			if network.Bits() == 0 {
				return bad(Warn, "name in http.trusted-cidrs the networks of your own only", "%s is trusted: everybody reads and sends without a token", network)
			}
		}
		return well("%d networks are trusted", len(s.Config.HTTP.TrustedCIDRs))
	}}}
}

func (s Subject) http() Section {
	return Section{{Name: "http tokens", Look: func(context.Context) Finding {
		path := s.Config.HTTP.TokensFile
		if path == "" {
			return bad(Warn, "set http.tokens-file to a file of lines \"token name role\"", "no tokens: nobody is an operator, nothing can be replayed")
		}
		tokens, err := access.OpenTokens(path, s.Now, s.Lane.Log)
		if err != nil {
			return bad(Refuse, "mend the file: one \"token name role\" a line, role reader, sender or operator", "%s", err)
		}
		if !tokens.Any(access.Operator) {
			return bad(Warn, "add a token of role operator", "nobody is an operator: nothing can be replayed")
		}
		return well("there is an operator")
	}}}
}
