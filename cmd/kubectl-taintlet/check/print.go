package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/taintlet/taintlet/cmd/terminal"
)

// maxText is the longest text of a line, in bytes. Parts of it come from the API
// server.
const maxText = 600

// clean makes a text that has parts of others safe for a terminal.
func clean(text string) string {
	return terminal.Clean(strings.ReplaceAll(text, "\n", " "), maxText)
}

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
				fmt.Fprintf(&text, "    %s\n    %s\n", line.Remedy, line.Link)
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
