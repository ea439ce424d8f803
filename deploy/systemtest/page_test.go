package systemtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// page is one scenario of docs/runbook.md in the hands of somebody who has nothing else: its commands are typed as they stand
// there, with the numbers that were found put in for those of the page. A command of the page that nobody types fails the test.
type page struct {
	t        *testing.T
	pod      *pod
	env      []string // of commands
	commands []string
	typed    map[string]bool

	msg, event, flid, fault string // what stands for 4711, 99, 15 and "no such stand"
}

// command is one in the page's text.
var command = regexp.MustCompile("`((?:get|order|metric|msgexchange) [^`\n]+)`")

// open opens the page at a scenario.
func (w *world) open(t *testing.T, p *pod, title string, env ...string) *page {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "\n## "+title+"\n")
	require.True(t, found, "the runbook has no %q", title)
	section, _, _ := strings.Cut(after, "\n## ")
	b := &page{t: t, pod: p, env: append(slices.Clone(w.base), env...), typed: map[string]bool{}}
	for _, m := range command.FindAllStringSubmatch(section, -1) {
		b.commands = append(b.commands, m[1])
	}
	t.Cleanup(func() {
		for _, c := range b.commands {
			require.True(t, b.typed[c] || t.Failed(), "the page says `%s`, and nobody typed it", c)
		}
	})
	return b
}

// words splits a command as a shell does; the page quotes with ' only.
var words = regexp.MustCompile(`'[^']*'|\S+`)

// types types a command of the page and gives what it prints; input is for msgexchange.
func (b *page) types(command string, input ...string) string {
	b.t.Helper()
	require.Contains(b.t, b.commands, command, "the page does not say so")
	b.typed[command] = true
	for in, number := range map[string]string{"4711": b.msg, "[99]": "[" + b.event + "]", "events/99": "events/" + b.event, "flights/15/": "flights/" + b.flid + "/"} {
		command = strings.ReplaceAll(command, in, number)
	}
	if b.fault != "" {
		command = strings.ReplaceAll(command, "no+such+stand", b.fault)
	}
	w := words.FindAllString(command, -1)
	for i := range w {
		w[i] = strings.Trim(w[i], "'")
	}
	switch w[0] {
	case "get":
		_, body := getAs(b.t, b.pod.address()+w[1], operatorToken) // as the page's ask does
		return body
	case "order":
		_, body := order(b.t, b.pod.address()+w[1], w[2])
		return body
	case "metric":
		_, all := get(b.t, b.pod.address()+"/metrics")
		return strings.Join(regexp.MustCompile("(?m)^"+w[1]+".*$").FindAllString(all, -1), "\n")
	default:
		return b.runs(w[1:], strings.Join(input, ""))
	}
}

// runs runs the program, to its end.
func (b *page) runs(args []string, input string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), build(b.t), args...)
	cmd.Env = append(os.Environ(), b.env...)
	cmd.Stdin = strings.NewReader(input)
	out, _ := cmd.CombinedOutput() // doctor and decode say what they find; the exit code says it again
	return string(out)
}

// sees types a command until what it prints is as expected: who looks again after a moment sees what has become of it.
func (b *page) sees(command, expected string) string {
	b.t.Helper()
	var last string
	eventually(b.t, 40*time.Second, func() error {
		if last = b.types(command); !regexp.MustCompile(expected).MatchString(last) {
			return &notYet{command + " shows " + last + ", not " + expected}
		}
		return nil
	})
	return last
}

// item is one of a list's.
type item map[string]any

func (i item) text(field string) string {
	raw, _ := json.Marshal(i[field])
	return strings.Trim(string(raw), `"`)
}

// items are those of a list.
func (b *page) items(answer string) []item {
	b.t.Helper()
	var list struct{ Items []item }
	d := json.NewDecoder(strings.NewReader(answer))
	d.UseNumber()
	require.NoError(b.t, d.Decode(&list), answer)
	return list.Items
}

// story is one object.
func (b *page) story(answer string) item {
	b.t.Helper()
	var i item
	d := json.NewDecoder(strings.NewReader(answer))
	d.UseNumber()
	require.NoError(b.t, d.Decode(&i), answer)
	return i
}

// incident lets one happen in the background; end lets the outside do its part.
func (w *world) incident(t *testing.T, name string, args ...string) (p *pod, end func()) {
	t.Helper()
	p = w.command(t, "incident", append([]string{"simulate", "--fault", name}, args...))
	return p, func() {
		t.Helper()
		p.signal(syscall.SIGINT)
		require.Zero(t, p.exit(30*time.Second), p.log.String())
	}
}

// said waits for a sentence of an incident and gives the number in it.
func said(t *testing.T, p *pod, sentence string) string {
	t.Helper()
	var number string
	eventually(t, 30*time.Second, func() error {
		m := regexp.MustCompile(sentence).FindStringSubmatch(p.log.String())
		if m == nil {
			return &notYet{p.log.String()}
		}
		number = m[len(m)-1]
		return nil
	})
	return number
}
