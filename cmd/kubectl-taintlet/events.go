package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints/apiserver"
)

func eventsVerb() *cobra.Command {
	var cluster command.Cluster
	var since time.Duration
	var output string
	c := &cobra.Command{
		Use: "events [NODE]", Short: "list taintlet's Events, the newest last",
		Long: `List taintlet's Events about Nodes, the newest last. docs/events.md explains each reason.

The API server keeps Events for an hour, unless it is configured otherwise.`,
		Example: `  # What happened to this Node?
  kubectl taintlet events worker-3
  # What happened in the last 10 minutes?
  kubectl taintlet events --since=10m`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usagef("unexpected argument %q: events takes one Node", args[1])
			}
			return nodeNames(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			config, err := cluster.RestConfig()
			if err != nil {
				return err
			}
			client, err := apiserver.NewClient(config, "")
			if err == nil {
				err = status.CheckNames(c.Context(), client, args)
			}
			if err != nil {
				return err
			}
			reader, err := installation.NewReader(config, "")
			if err != nil {
				return err
			}
			events, err := readEvents(c.Context(), reader, strings.Join(args, ""), since)
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(c.OutOrStdout()).Encode(events)
			}
			columns := 0
			if screen := terminal.NewScreen(c.OutOrStdout()); screen.IsTerminal {
				columns, _ = screen.Size()
			}
			return showEvents(c.OutOrStdout(), events, time.Now(), columns)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.DurationVar(&since, "since", time.Hour, "maximum age of the Events; 0: all")
	command.AddChoice(c, &output, "output", "o", "table or json", "table", "json")
	cluster.Add(flags)
	return c
}

// event is one of taintlet's Events. Fields are only ever added.
type event struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// maxMessage is the longest message of an Event that is shown, in bytes.
const maxMessage = 2048

// readEvents reads taintlet's Events about a Node, or about all.
func readEvents(ctx context.Context, reader *installation.Reader, node string, since time.Duration) ([]event, error) {
	all, err := reader.Events(ctx, node)
	if err != nil {
		return nil, err
	}
	events := []event{}
	for _, e := range all {
		at := installation.At(e)
		if since > 0 && time.Since(at) > since {
			continue
		}
		events = append(events, event{
			at.UTC(), terminal.Clean(e.InvolvedObject.Name, maxWord), terminal.Clean(e.Type, maxWord),
			terminal.Clean(e.Reason, maxWord), terminal.Clean(e.Message, maxMessage),
		})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.Time.Compare(b.Time) })
	return events, nil
}

// showEvents writes Events as a table. On a screen of so many columns, each message is below
// its row.
func showEvents(w io.Writer, events []event, now time.Time, columns int) error {
	if len(events) == 0 {
		_, err := fmt.Fprintln(w, "no Events of taintlet")
		return err
	}
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "AGE\tNODE\tTYPE\tREASON\tMESSAGE")
	for _, e := range events {
		message := e.Message
		if columns > 0 {
			message = ""
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", terminal.Span(max(0, now.Sub(e.Time))), e.Node, e.Type, e.Reason, message)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if columns == 0 {
		_, err := io.WriteString(w, text.String())
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		lines := []string{strings.TrimRight(strings.TrimSuffix(line, "MESSAGE"), " ")}
		if i > 0 {
			lines = append(lines, terminal.Wrap(events[i-1].Message, "    ", columns)...)
		}
		if _, err := fmt.Fprintln(w, strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return nil
}
