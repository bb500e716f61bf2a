package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/recording"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/words"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

func replayVerb() *cobra.Command {
	var path string
	var lifecycleController bool
	c := &cobra.Command{
		Use: "replay FILE", Short: "show what a configuration would have done on recorded samples",
		Long: `Show what a configuration would have done on the samples that "taintlet record" wrote into a CSV FILE: when
each condition would have been set and cleared, with which taints. It contacts no API server.`,
		Example: `  # What would these thresholds have done?
  kubectl taintlet replay host.csv --config=config.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.Usagef("say which recording: FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := command.LoadConfig(path)
			if err != nil {
				return err
			}
			return replayFile(cfg, args[0], lifecycleController, c.OutOrStdout())
		},
	}
	c.Flags().SortFlags = false
	command.AddConfig(c.Flags(), &path)
	command.AddLifecycleController(c.Flags(), &lifecycleController)
	return c
}

// replayFile prints what a configuration would have done on a recording.
func replayFile(cfg *config.Config, path string, lifecycleController bool, w io.Writer) error {
	file, err := os.Open(path) //nolint:gosec // named by whoever calls us
	if err != nil {
		return command.UsageError{Err: err}
	}
	defer file.Close() //nolint:errcheck // it was only read
	lines, err := recording.NewReader(file)
	if err != nil {
		return command.Usagef("%s: %w", path, err)
	}
	r := newReplay(cfg, lifecycleController, w)
	for {
		sample, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return command.Usagef("%s: %w", path, err)
		}
		if err := r.add(sample); err != nil {
			return err
		}
	}
	if r.samples == 0 {
		return command.Usagef("%s: no sample follows the header", path)
	}
	return r.summarize()
}

// replay drives the decider of the agent through recorded samples, on a Node in
// memory that nobody else touches. Every write lands at once.
type replay struct {
	cfg    *config.Config
	policy *decide.Policy
	facts  taints.Facts
	slot   decide.Slot
	state  decide.State
	node   *decide.Node

	w         io.Writer
	subjects  []*replayed
	samples   int
	from, now time.Time
}

// replayed is what happened to one condition.
type replayed struct {
	name    probes.Condition
	section config.Section
	level   probes.Level
	// taints are those on the Node for this condition.
	taints []string
	since  time.Time // when it left OK

	samples, bad, kept       int // kept: with the level that was recorded
	sets, criticals, cleared int
	notOK                    time.Duration
}

func newReplay(cfg *config.Config, lifecycleController bool, w io.Writer) *replay {
	r := &replay{cfg: cfg, policy: cfg.Policy(), facts: words.Complete(cfg, lifecycleController), slot: decide.SlotNone, w: w}
	if cfg.Eviction.Slots > 0 {
		r.slot = decide.SlotHeld
	}
	r.node = decide.Read(&taints.Node{Name: "replayed", UID: "1", ResourceVersion: "1"})
	for _, c := range cfg.Conditions {
		r.subjects = append(r.subjects, &replayed{name: c.Name, section: c.Section, level: probes.OK})
	}
	return r
}

// add replays one sample.
func (r *replay) add(sample recording.Sample) error {
	r.now = sample.At
	if r.samples == 0 {
		r.from = r.now
		r.state = decide.New(decide.Boot{ID: "replayed", At: r.now}, "replay", r.now)
	}
	r.samples++
	i := slices.IndexFunc(r.subjects, func(c *replayed) bool { return c.name == sample.Observation.Condition })
	o := r.subjects[i].evaluate(sample)
	r.step(decide.Inputs{Observations: []probes.Observation{o}})
	return r.print(o)
}

// evaluate evaluates a sample by the thresholds of the configuration. Where its inputs do
// not say enough, the recorded level stays.
func (c *replayed) evaluate(sample recording.Sample) probes.Observation {
	o := sample.Observation
	again, ok := probes.Observation{}, false
	if section, can := c.section.(config.Rejudger); can {
		again, ok = section.Rejudge(o, sample.Inputs)
	}
	if ok {
		o = again
	} else {
		c.kept++
		o.Message = strings.TrimSpace("recorded as " + o.Level.String() + " " + o.Reason)
	}
	c.samples++
	if o.Level >= probes.Degraded {
		c.bad++
	}
	return o
}

// step asks the decider and writes what it wants written.
func (r *replay) step(in decide.Inputs) {
	in.Node, in.Facts, in.Slot = r.node, r.facts, r.slot
	var d decide.Decision
	r.state, d = decide.Step(r.policy, r.state, in, r.now)
	if d.Desired == nil {
		return
	}
	r.node = decide.Read(d.Desired.ApplyTo(r.node.Node))
	r.step(decide.Inputs{Written: true})
}

// print writes what the newest sample changed.
func (r *replay) print(newest probes.Observation) error {
	for _, c := range r.subjects {
		level, on := r.state.Level(c.name), r.taintsOf(c.name)
		if level == c.level && slices.Equal(on, c.taints) {
			continue
		}
		why := ""
		if newest.Condition == c.name {
			why = newest.Message
		}
		if _, err := fmt.Fprintf(r.w, "%s  %-18s  %s → %s%s\n", r.now.Format(time.RFC3339), c.name, c.level, level, inBrackets(why)); err != nil {
			return err
		}
		for _, line := range differences(c.taints, on) {
			fmt.Fprintf(r.w, "%22s%s\n", "", line)
		}
		c.enter(level, r.now)
		c.taints = on
	}
	return nil
}

func inBrackets(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// taintsOf returns the taints that are on the Node for a condition.
func (r *replay) taintsOf(condition probes.Condition) []string {
	var on []string
	for _, p := range r.state.DesiredTaints() {
		if p.Condition == condition && r.node.Has(p.Pair) {
			on = append(on, p.Taint().String())
		}
	}
	return on
}

// differences says which taints were set and removed.
func differences(before, after []string) []string {
	var lines []string
	for _, taint := range after {
		if !slices.Contains(before, taint) {
			lines = append(lines, "sets "+taint)
		}
	}
	for _, taint := range before {
		if !slices.Contains(after, taint) {
			lines = append(lines, "removes "+taint)
		}
	}
	return lines
}

// enter counts a change of the level.
func (c *replayed) enter(level probes.Level, now time.Time) {
	switch {
	case level == c.level:
		return
	case level == probes.OK:
		c.cleared++
		c.notOK += now.Sub(c.since)
	case c.level == probes.OK:
		c.sets++
		c.since = now
	}
	if level == probes.Critical {
		c.criticals++
	}
	c.level = level
}
