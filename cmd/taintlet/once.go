package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// report is what --once prints as JSON or YAML. Fields are only ever added
// within a version.
type report struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Node       string      `json:"node"`
	Conditions []condition `json:"conditions"`
	// Eviction says in words what level Critical would do.
	Eviction []string `json:"eviction"`
}

type condition struct {
	probes.Observation
	// Wake is what wakes the running probe earlier than its period.
	Wake string `json:"wake"`
	// Taint is asked for at this level; empty: none.
	Taint string `json:"taint,omitempty"`
	// Via is how the taint stays on the Node; StandIn is the pair in its place
	// where the admission policy of deploy/keep.yaml is absent.
	Via     taints.Via `json:"via,omitempty"`
	StandIn string     `json:"standIn,omitempty"`
}

// onceTimeout is how long the probes may take together.
const onceTimeout = 10 * time.Second

// once takes one sample of everything and prints it.
func once(ctx context.Context, o *options, cfg *config.Config, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, onceTimeout)
	defer cancel()
	r := report{APIVersion: config.APIVersion, Kind: "HostReport", Node: o.nodeName}
	code := exitOK
	var list []probes.Probe
	for _, condition := range cfg.Conditions {
		list = append(list, condition.NewProbe(o.host))
	}
	for i, observation := range sampleOnce(ctx, list) {
		r.Conditions = append(r.Conditions, o.ask(cfg, observation, list[i].WakeMode()))
		if observation.Level != probes.OK {
			code = exitNotOK
		}
	}
	r.Eviction = evictionInWords(cfg)
	if err := r.print(o.output, stdout); err != nil {
		fmt.Fprintf(stderr, "taintlet: %v\n", err)
		return exitFailure
	}
	return code
}

// sampleOnce asks all probes at the same time, so that a probe that hangs delays
// no other beyond its own deadline.
func sampleOnce(ctx context.Context, list []probes.Probe) []probes.Observation {
	observations := make([]probes.Observation, len(list))
	var group sync.WaitGroup
	for i, probe := range list {
		group.Go(func() { observations[i] = probe.Observe(ctx) })
	}
	group.Wait()
	return observations
}

// ask adds what the rules ask for at the level that was seen. Whether the
// admission policy is there is not known without an API server: via is that of
// a complete installation.
func (o *options) ask(cfg *config.Config, observation probes.Observation, wake string) condition {
	c := condition{Observation: observation, Wake: wake}
	facts := taints.Facts{LifecycleController: o.lifecycleController, KeepPolicy: true, StandInPrefix: cfg.StandInPrefix}
	for _, rule := range cfg.Rules {
		if rule.Condition != observation.Condition || rule.Level != observation.Level {
			continue
		}
		via, pair := taints.Resolve(rule.Taint.Pair(), facts)
		c.Taint, c.Via = pair.String(), via
		if via == taints.Kept {
			c.StandIn = taints.StandInFor(pair, cfg.StandInPrefix).String()
		}
	}
	return c
}

func (r report) print(format string, w io.Writer) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
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
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", c.Condition, c.Level, c.Severity, orDash(c.Taint), orDash(string(c.Via)), c.Message)
		if why, periodOnly := strings.CutPrefix(c.Wake, "period: "); periodOnly {
			notes = append(notes, fmt.Sprintf("%s is sampled by period only: %s.", c.Condition, why))
		} else if c.Wake != "period" {
			notes = append(notes, fmt.Sprintf("%s is sampled early when woken: %s.", c.Condition, c.Wake))
		}
		if c.StandIn != "" {
			notes = append(notes, fmt.Sprintf("Without deploy/keep.yaml, %s stands in for %s.", c.StandIn, c.Taint))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(append(notes, r.Eviction...), "\n"))
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
