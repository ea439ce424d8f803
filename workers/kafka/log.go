package kafka

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/IBM/sarama"
)

// BridgeLogs sends what sarama has to say to log, at DEBUG. sarama's logger is one for the process and unguarded: call this
// once, before the first Producer is made.
func BridgeLogs(log *slog.Logger) {
	sarama.Logger = bridge{log.With("component", "sarama")}
}

type bridge struct{ log *slog.Logger }

func (b bridge) say(text string) { b.log.Debug("kafka client", "text", strings.TrimSpace(text)) }

func (b bridge) Print(v ...any)                 { b.say(fmt.Sprint(v...)) }
func (b bridge) Println(v ...any)               { b.say(fmt.Sprintln(v...)) }
func (b bridge) Printf(format string, v ...any) { b.say(fmt.Sprintf(format, v...)) }
