package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/cmd/words"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/pace"
)

// onceTimeout is how long the probes may take together.
const onceTimeout = 10 * time.Second

func onceVerb() *cobra.Command {
	var s sampler
	var output string
	var isWatched bool
	c := &cobra.Command{
		Use: "once", Short: "Take one sample of this host and print it", Args: cobra.NoArgs,
		Long: `Take one sample of this host and print it.

It runs each probe once and prints the taints that the rules would set. It contacts no API server and
changes nothing. SEVERITY 50 is the threshold of Degraded. VIA shows how a taint would stay on the
Node if deploy/keep.yaml were installed. An agent sets a taint only after several samples. With --watch it
samples every second until Ctrl-C.

Exit code 3: a condition is not OK. With --watch it is 0.`,
		Example: `  # Is this host healthy?
  taintlet once
  # For a bug report
  taintlet once -o yaml
  # Watch how near each threshold is
  taintlet once --watch
  # Use the thresholds of a file
  taintlet once --config=config.yaml`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.load(); err != nil {
				return err
			}
			out := c.OutOrStdout()
			if isWatched && c.Flags().Changed("output") {
				return command.Usagef("--watch and --output exclude each other")
			}
			for {
				r := s.sample(c.Context())
				if to, isOurs := out.(*terminal.Writer); isWatched && isOurs {
					_ = to.Clear() // what follows fails too
					fmt.Fprintf(out, "%s  %s\n\n", r.Node, time.Now().Format(time.TimeOnly))
				}
				switch err := r.print(output, out); {
				case err != nil:
					return err
				case isWatched && pace.Sleep(c.Context(), time.Second):
				case isWatched || r.isWell():
					return nil
				default:
					return command.ErrNotWell
				}
			}
		},
	}
	c.Flags().SortFlags = false
	command.AddChoice(c, &output, "output", "o", "output `format`: table, json or yaml", "table", "json", "yaml")
	c.Flags().BoolVarP(&isWatched, "watch", "w", false, "sample every second until Ctrl-C")
	command.AddConfig(c.Flags(), &s.config)
	addNodeName(c.Flags(), &s.nodeName)
	addHost(c.Flags(), &s.host)
	return c
}

// report is what once prints as JSON or YAML. Fields are only ever added
// within a version.
type report struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Node       string      `json:"node"`
	Conditions []condition `json:"conditions"`
	// Reported are the conditions that others report on the Node, where only the agent looks.
	Reported []string `json:"reported,omitempty"`
	// NoStalls: this host has no PSI (/proc/pressure), so stalls set no condition and wake no probe.
	NoStalls bool `json:"noStalls,omitempty"`
	// Eviction says in words what level Critical would do.
	Eviction []string `json:"eviction"`
}

type condition struct {
	probes.Observation
	Taints []asked `json:"taints,omitempty"`
}

type asked struct {
	Taint string `json:"taint"`
	// Via is how the taint stays on the Node; StandIn is the pair in its place
	// where the admission policy of deploy/keep.yaml is absent.
	Via     taints.Via `json:"via"`
	StandIn string     `json:"standIn,omitempty"`
}

func (r report) isWell() bool {
	return !slices.ContainsFunc(r.Conditions, func(c condition) bool { return c.Level != probes.OK })
}

func (r report) print(format string, w io.Writer) (err error) {
	var data []byte
	switch format {
	case "json":
		data, err = json.MarshalIndent(r, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(r)
	default:
		return r.table(w)
	}
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func (r report) table(w io.Writer) error {
	rows, notes := [][]string{{"CONDITION", "LEVEL", "SEVERITY", "TAINT", "VIA", "MESSAGE"}}, []string{""}
	for _, c := range r.Conditions {
		var set, via []string
		for _, a := range c.Taints {
			set, via = append(set, a.Taint), append(via, string(a.Via))
		}
		rows = append(rows, []string{string(c.Condition), c.Level.String(), fmt.Sprint(c.Severity), cmp.Or(strings.Join(set, ", "), "-"), cmp.Or(strings.Join(via, ", "), "-"), c.Message})
		for _, a := range c.Taints {
			if a.StandIn != "" {
				notes = append(notes, fmt.Sprintf("Without deploy/keep.yaml, %s stands in for %s.", a.StandIn, a.Taint))
			}
		}
	}
	for _, name := range r.Reported {
		notes = append(notes, name+" is a Node condition of another program. Only the agent reads it.")
	}
	if r.NoStalls {
		notes = append(notes, "This host has no PSI (/proc/pressure), so stalls are not detected.")
	}
	_, err := fmt.Fprintln(w, strings.Join(slices.Concat(terminal.Aligned(rows), notes, r.Eviction), "\n"))
	return err
}

// sampler takes a sample of this host, without any API server.
type sampler struct {
	nodeName string
	config   string
	host     probes.Host

	cfg    *config.Config
	probes []probes.Probe
	// reported are the conditions that others report, which have no probe of the host.
	reported []string
}

func (s *sampler) load() (err error) {
	if s.cfg, err = command.LoadConfig(s.config); err != nil {
		return err
	}
	newProbe := hostprobes.NewProbe(s.host)
	for _, condition := range s.cfg.Conditions {
		if _, isReported := condition.Section.(*config.Reported); isReported {
			s.reported = append(s.reported, string(condition.Name))
			continue
		}
		s.probes = append(s.probes, newProbe(condition))
	}
	return nil
}

// sample asks all probes at the same time, so that a probe that hangs delays no other beyond its
// own deadline, and adds what the rules ask for.
func (s *sampler) sample(ctx context.Context) report {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	r := report{APIVersion: config.APIVersion, Kind: "HostReport", Node: s.nodeName, Eviction: words.Eviction(s.cfg), Reported: s.reported, Conditions: make([]condition, len(s.probes))}
	_, hasStalls, _ := pressure.Read(s.host, "memory") // an error is the probe's to tell
	r.NoStalls = !hasStalls
	var group sync.WaitGroup
	for i, probe := range s.probes {
		group.Go(func() { r.Conditions[i] = s.ask(hostprobes.Observe(ctx, probe)) })
	}
	group.Wait()
	return r
}

// ask adds what the rules ask for at the level that was seen, as a complete installation sets it.
func (s *sampler) ask(observation probes.Observation) condition {
	c := condition{Observation: observation}
	for _, rule := range s.cfg.Policy().RulesFor(observation) {
		via, pair := taints.Resolve(rule.Taint.Pair(), words.Complete(s.cfg))
		a := asked{Taint: pair.With(rule.Taint.Value).String(), Via: via}
		if via == taints.Kept {
			a.StandIn = taints.StandInFor(pair, s.cfg.KeyPrefix).With(rule.Taint.Value).String()
		}
		c.Taints = append(c.Taints, a)
	}
	return c
}
