package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"
)

// helpWidth is how wide flags are printed, in columns.
const helpWidth = 110

// helpVerb shows what it is asked for: one of the topics, which are other verbs.
func helpVerb(topics []string) verb {
	return verb{
		name:      "help",
		arguments: "[VERB]",
		words:     topics,
		summary:   "show the verbs, or the flags and examples of one",
		examples:  []example{{"How is a Node cleaned up?", "taintlet help cleanup"}},
		bind: func(*pflag.FlagSet) func(context.Context, call) error {
			return func(_ context.Context, c call) error {
				v, err := find(strings.Join(c.args, " "))
				if err != nil {
					return err
				}
				_, err = io.WriteString(c.stdout, v.help(c.program))
				return err
			}
		},
	}
}

// help is what --help prints. program is what people type to call the program.
func (v verb) help(program string) string {
	var text strings.Builder
	if v.name == "" {
		fmt.Fprintf(&text, "taintlet watches the health of the host it runs on and keeps the right taints on its\nown Kubernetes Node. Without a verb it runs the agent.\n\nUsage:\n  %s [flags]\n  %s VERB [flags]\n\n", program, program)
		writeVerbs(&text)
	} else {
		fmt.Fprintf(&text, "%s%s.\n\n", strings.ToUpper(v.summary[:1]), v.summary[1:])
		if v.about != "" {
			fmt.Fprintf(&text, "%s\n\n", strings.TrimSpace(v.about))
		}
		fmt.Fprintf(&text, "Usage:\n  %s\n\n", strings.Join(strings.Fields(strings.Join([]string{program, v.name, v.arguments, v.flagsWord()}, " ")), " "))
	}
	text.WriteString("Examples:\n")
	for _, e := range v.examples {
		fmt.Fprintf(&text, "  # %s\n  %s\n", e.does, strings.Replace(e.command, "taintlet ", program+" ", 1))
	}
	if flags, _ := v.flags(); flags.HasFlags() {
		fmt.Fprintf(&text, "\nFlags%s:\n%s", map[bool]string{true: " of the agent"}[v.name == ""], flags.FlagUsagesWrapped(helpWidth))
	}
	v.writeExits(&text)
	if v.name == "" {
		fmt.Fprintf(&text, "\n%s help VERB shows the flags and examples of a verb.\n", program)
	}
	return text.String()
}

func (v verb) flagsWord() string {
	if flags, _ := v.flags(); flags.HasFlags() {
		return "[flags]"
	}
	return ""
}

// writeVerbs lists the verbs that have a name.
func writeVerbs(w io.Writer) {
	fmt.Fprintln(w, "Verbs:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range verbs() {
		if v.name != "" {
			fmt.Fprintf(t, "  %s\t%s\n", v.name, v.summary)
		}
	}
	t.Flush() //nolint:errcheck // into memory
	fmt.Fprintln(w)
}

// writeExits lists the exit codes; those of the agent's help are of all verbs.
func (v verb) writeExits(w io.Writer) {
	notWell := v.notWell
	if v.name == "" {
		var with []string
		for _, other := range verbs() {
			if other.notWell != "" {
				with = append(with, other.name)
			}
		}
		notWell = "something is not well (" + strings.Join(with, ", ") + ")"
	}
	fmt.Fprintf(w, "\nExit codes:\n  %d  success\n  %d  failure\n  %d  wrong arguments or configuration\n", exitOK, exitFailure, exitUsage)
	if notWell != "" {
		fmt.Fprintf(w, "  %d  %s\n", exitNotWell, notWell)
	}
}
