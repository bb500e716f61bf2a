package check

import (
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/cmd/terminal"
)

// State is what a check found.
type State string

// The States.
const (
	OK      State = "OK"
	Warning State = "Warning" // works, but not as well as it could
	Failed  State = "Failed"
	Skipped State = "Skipped" // nobody can tell, for the reason given
)

// answer is what a check found, in words.
type answer struct {
	state State
	text  string
	// remedy is what to do about this answer; empty: that of the check.
	remedy string
}

func ok(format string, args ...any) answer { return answer{OK, fmt.Sprintf(format, args...), ""} }

func warn(format string, args ...any) answer {
	return answer{Warning, fmt.Sprintf(format, args...), ""}
}

func fail(format string, args ...any) answer { return answer{Failed, fmt.Sprintf(format, args...), ""} }

func skip(format string, args ...any) answer {
	return answer{Skipped, fmt.Sprintf(format, args...), ""}
}

// but returns the answer with a remedy of its own.
func (a answer) but(remedy string) answer {
	a.remedy = remedy
	return a
}

// unread is the answer of a check that could not read what it is about. Who lacks a
// permission is told so, and not how to correct what may be healthy.
func unread(what string, err error) answer {
	if apierrors.IsForbidden(err) {
		return skip("%s: you may not read that: %v", what, err)
	}
	return fail("%s cannot be read: %v", what, err).but("try again; if it stays so, look at the API server")
}

// maxText is the longest text of a line, in bytes. Parts of it come from the API
// server.
const maxText = 600

// clean makes a text that has parts of others safe for a terminal.
func clean(text string) string { return terminal.Sentence(text, maxText) }

func (s State) sign() string {
	switch s {
	case OK:
		return "√"
	case Warning:
		return "‼"
	case Failed:
		return "×"
	}
	return "-"
}

func (r Report) print(w io.Writer, format string) error {
	if format == "json" {
		return terminal.WriteJSON(w, r)
	}
	var text strings.Builder
	counts := map[State]int{}
	for _, g := range r.Groups {
		fmt.Fprintf(&text, "%s\n%s\n", g.Name, strings.Repeat("-", len(g.Name)))
		for _, line := range g.Lines {
			counts[line.State]++
			fmt.Fprintf(&text, "%s %s\n", line.State.sign(), line.Text)
			if line.Remedy != "" {
				fmt.Fprintf(&text, "    %s\n", line.Remedy)
				if line.Command != "" {
					fmt.Fprintf(&text, "    %s\n", line.Command)
				}
				fmt.Fprintf(&text, "    %s\n", line.Link)
			}
		}
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%d passed", counts[OK])
	for _, other := range []struct {
		state State
		word  string
	}{{Warning, "with a warning"}, {Failed, "failed"}, {Skipped, "not checked"}} {
		if counts[other.state] > 0 {
			fmt.Fprintf(&text, ", %d %s", counts[other.state], other.word)
		}
	}
	if r.Stopped {
		text.WriteString("; without that nothing else can be checked")
	}
	text.WriteString("\n")
	_, err := io.WriteString(w, text.String())
	return err
}
