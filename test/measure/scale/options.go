package scale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/agent/config"
)

// settle is how long after something the next thing begins.
const settle = 10 * time.Second

type options struct {
	nodes                               int
	ramp, idle, base, restart, observed time.Duration
	refresh, limit                      time.Duration
	brake                               int
	cores                               float64  // of etcd and the API server together; 0: all
	parts                               []string // empty: all
	partial                             string   // what a full run has and this one has not
	results                             string
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("scale", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.IntVar(&o.nodes, "nodes", 100, "how many Nodes")
	flags.DurationVar(&o.ramp, "ramp", 5*time.Minute, "the time in which all agents start: a heartbeat, so that they are evenly spread")
	flags.DurationVar(&o.idle, "idle", 10*time.Minute, "how long they are idle: whole heartbeats, and a refresh of the slices")
	flags.DurationVar(&o.base, "base", time.Minute, "how long the cluster is measured without agents")
	flags.DurationVar(&o.restart, "restart", 50*time.Second, "the time in which all agents are restarted, a tenth at a time")
	flags.DurationVar(&o.observed, "observed", 0, "how long each incident is observed (default 1m0s, and 10 s more than the last taint may take)")
	flags.DurationVar(&o.refresh, "refresh", 10*time.Minute, "how long the agents are observed after their EndpointSlices have changed")
	flags.DurationVar(&o.limit, "limit", 3*time.Hour, "stop after this time, and report what was measured by then")
	flags.Float64Var(&o.cores, "cores", 0, "how many processors etcd and the API server may use together (0: all; needs root)")
	flags.StringSliceVar(&o.parts, "parts", nil, "measure these alone, in the order of a full run: "+strings.Join(partNames(), ", "))
	flags.StringVar(&o.results, "results", "results", "where results are written, seen from test/measure/scale")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if len(flags.Args()) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Args()[0])
	}
	if o.cores < 0 || o.cores > 0 && o.measures("outage") {
		return nil, fmt.Errorf("--cores %g: must not be negative, and goes with --parts without outage, which starts another API server", o.cores)
	}
	if o.nodes < 20 {
		return nil, fmt.Errorf("--nodes %d: must be at least 20", o.nodes)
	}
	for _, part := range o.parts {
		if !slices.Contains(partNames(), part) {
			return nil, fmt.Errorf("--parts %s: must be one of %s", part, strings.Join(partNames(), ", "))
		}
	}
	usual := max(time.Minute, lastTaintWithin(o.nodes)+settle)
	o.observed = cmp.Or(o.observed, usual)
	o.partial = partialBy(flags, o.parts, usual)
	o.brake = config.Default().FleetBrake.Percent
	return o, nil
}

// partialBy says what a full run has and this one has not; empty: nothing. observed is how
// long a full run of this size observes an incident.
func partialBy(flags *pflag.FlagSet, parts []string, observed time.Duration) string {
	var all []string
	if len(parts) > 0 {
		all = append(all, "only "+strings.Join(parts, ", "))
	}
	if cores := flags.Lookup("cores").Value.String(); cores != flags.Lookup("cores").DefValue {
		all = append(all, "cores "+cores+", not all")
	}
	flags.Visit(func(f *pflag.Flag) {
		given, err := time.ParseDuration(f.Value.String())
		usual, defaultErr := time.ParseDuration(f.DefValue)
		if f.Name == "observed" {
			usual = observed
		}
		if err == nil && defaultErr == nil && given < usual && f.Name != "limit" {
			all = append(all, fmt.Sprintf("%s %s, not %s", f.Name, given, usual))
		}
	})
	return strings.Join(all, "; ")
}

// part of a run: its name at the command line, and what it is.
type part struct{ name, says string }

const baselinePart = "baseline"

// parts are what a full run measures, in this order.
func parts() []part {
	return []part{
		{baselinePart, "the cluster alone, and with bare watches"},
		{"idle", "agents are idle"},
		{"status", "kubectl taintlet status"},
		{"admission", "a write with and without policies"},
		{"tls", "TLS connections"},
		{"braked", "an incident with the fleet brake"},
		{"zone-braked", "a zone fails, with the fleet brake"},
		{"rollout", "a configuration is rolled out"},
		{"incident", "an incident without the fleet brake"},
		{"restarts", "the DaemonSet is rolled out while all Nodes are tainted"},
		{"held", "the controller while all, some and no Nodes are held"},
		{"zone", "a zone fails, without the fleet brake"},
		{"slices", "agents read EndpointSlices that have changed"},
		{"cautious", "the brake is rolled out again, and an incident follows"},
		{"outage", "the API server restarts"},
	}
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// measures reports whether a part is asked for.
func (o *options) measures(part string) bool {
	return len(o.parts) == 0 || slices.Contains(o.parts, part)
}

// firstBrake is the fleet brake of the agents that start: off, if no part needs it.
func (o *options) firstBrake() int {
	for _, part := range []string{"idle", "braked", "zone-braked", "rollout"} {
		if o.measures(part) {
			return o.brake
		}
	}
	return 0
}
