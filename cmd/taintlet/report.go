package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// report is what once prints as JSON or YAML. Fields are only ever added
// within a version.
type report struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Node       string      `json:"node"`
	Conditions []condition `json:"conditions"`
	// Reported are the conditions that others report on the Node, where only the agent looks.
	Reported []string `json:"reported,omitempty"`
	// Eviction says in words what level Critical would do.
	Eviction []string `json:"eviction"`
}

type condition struct {
	probes.Observation
	// Wake is what wakes the running probe earlier than its period.
	Wake probes.WakeMode `json:"wake"`
	// Taints are asked for at this level.
	Taints []asked `json:"taints,omitempty"`
}

// asked is a taint that a rule asks for.
type asked struct {
	Taint string `json:"taint"`
	// Via is how the taint stays on the Node; StandIn is the pair in its place
	// where the admission policy of deploy/keep.yaml is absent.
	Via     taints.Via `json:"via"`
	StandIn string     `json:"standIn,omitempty"`
}

// texts returns a field of each taint for a column; a dash where there is none.
func (c condition) texts(field func(asked) string) string {
	if len(c.Taints) == 0 {
		return "-"
	}
	all := make([]string, len(c.Taints))
	for i, a := range c.Taints {
		all[i] = field(a)
	}
	return strings.Join(all, ", ")
}

// isWell reports whether all conditions are OK.
func (r report) isWell() bool {
	return !slices.ContainsFunc(r.Conditions, func(c condition) bool { return c.Level != probes.OK })
}

func (r report) print(format string, w io.Writer) error {
	switch format {
	case "json":
		return terminal.WriteJSON(w, r)
	case "yaml":
		data, err := yaml.Marshal(r)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	default:
		return r.table(w)
	}
}

func (r report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CONDITION\tLEVEL\tSEVERITY\tTAINT\tVIA\tMESSAGE")
	var notes []string
	for _, c := range r.Conditions {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", c.Condition, c.Level, c.Severity,
			c.texts(func(a asked) string { return a.Taint }), c.texts(func(a asked) string { return string(a.Via) }), c.Message)
		switch {
		case c.Wake.By == "" && c.Wake.Why != "":
			notes = append(notes, fmt.Sprintf("%s is sampled by period only: %s.", c.Condition, c.Wake.Why))
		case c.Wake.By != "":
			notes = append(notes, fmt.Sprintf("%s is sampled early when woken: %s.", c.Condition, c.Wake))
		}
		for _, a := range c.Taints {
			if a.StandIn != "" {
				notes = append(notes, fmt.Sprintf("Without deploy/keep.yaml, %s stands in for %s.", a.StandIn, a.Taint))
			}
		}
	}
	for _, name := range r.Reported {
		notes = append(notes, name+" is reported by others, as a condition of the Node. Only the agent looks there.")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(append(notes, r.Eviction...), "\n"))
	return err
}
