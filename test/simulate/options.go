package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/probes"
)

const (
	// defaultDuration is how long made-up input goes on.
	defaultDuration = 24 * time.Hour
	// maxDuration bounds the run: a year takes a minute.
	maxDuration = 366 * 24 * time.Hour
)

// options are the flags.
type options struct {
	synthetic  string
	conditions []string
	generator  parameters
	duration   time.Duration
	config     string
	followUp   bool
	output     string

	flags *pflag.FlagSet
}

// parse reads the flags and reports all that is wrong with them at once. Asked
// for help it writes that.
func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("simulate", pflag.ContinueOnError)
	o.flags = flags
	flags.SortFlags = false
	flags.StringVar(&o.synthetic, "synthetic", "", "made-up input: "+strings.Join(generatorNames(), ", "))
	flags.StringSliceVar(&o.conditions, "condition", []string{string(probes.MemoryPressure)}, "conditions that the made-up input is about (not with mixed)")
	flags.Uint64Var(&o.generator.seed, "seed", 1, "seed of random and of mixed")
	flags.DurationVar(&o.generator.flapPeriod, "flap-period", 10*time.Minute, "time from one failure of flap to the next")
	flags.Float64Var(&o.generator.flapDuty, "flap-duty", 0.3, "share of that time that is bad, between 0 and 1")
	flags.DurationVar(&o.duration, "duration", 0, "time to simulate (default: 24h)")
	flags.StringVar(&o.config, "config", "", "TaintletConfiguration file (default: the built-in configuration)")
	flags.BoolVar(&o.followUp, "follow-up", true, "sample again 100 ms (network: 1 s) after a bad sample until the condition is decided, as the agent does; false: by period only")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.Usage = func() { fmt.Fprintf(stdout, usage, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return o, o.validate()
}

func (o *options) validate() error {
	errs := append(o.validateInput(), o.generator.validate()...)
	if o.flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q", o.flags.Arg(0)))
	}
	if o.flags.Changed("duration") && (o.duration < time.Second || o.duration > maxDuration) {
		errs = append(errs, fmt.Errorf("--duration %s: must be 1s to %s", o.duration, maxDuration))
	}
	if o.output != "table" && o.output != "json" {
		errs = append(errs, fmt.Errorf("--output %q: must be table or json", o.output))
	}
	return errors.Join(errs...)
}

func (o *options) validateInput() []error {
	var errs []error
	if !slices.Contains(generatorNames(), o.synthetic) {
		errs = append(errs, fmt.Errorf("--synthetic %q: must be one of %s", o.synthetic, strings.Join(generatorNames(), ", ")))
	}
	if o.flags.Changed("condition") && o.synthetic == mixed {
		errs = append(errs, fmt.Errorf("--condition: does not go with %s, which is about all four", mixed))
	}
	if len(o.conditions) == 0 {
		errs = append(errs, errors.New("--condition: needs at least one"))
	}
	for _, c := range o.conditions {
		if _, err := parseCondition(c); err != nil {
			errs = append(errs, fmt.Errorf("--condition %w", err))
		}
	}
	return errs
}

func (p parameters) validate() []error {
	var errs []error
	if p.flapPeriod < time.Second || p.flapPeriod > maxDuration {
		errs = append(errs, fmt.Errorf("--flap-period %s: must be 1s to %s", p.flapPeriod, maxDuration))
	}
	if !(p.flapDuty > 0 && p.flapDuty < 1) {
		errs = append(errs, fmt.Errorf("--flap-duty %g: must be more than 0 and less than 1", p.flapDuty))
	}
	return errs
}

// open returns the input that the flags ask for.
func (o *options) open() *input {
	in := synthesize(o.synthetic, o.conditions, o.generator)
	in.duration = defaultDuration
	if o.flags.Changed("duration") {
		in.duration = o.duration
	}
	return in
}

const usage = `simulate drives the decider of taintlet through made-up input, beside
the kubelet's rule on the same input, and tells what either would have done.

Usage: go run ./test/simulate --synthetic NAME [flags]

%s
Made-up input:
  quiet              always OK
  spike              bursts of 1 s to 60 s, every quarter of an hour
  flap               bad for --flap-duty of every --flap-period
  adversary          fails 2 s after each clear of taintlet, heals when tainted
  kubelet-adversary  the same against the kubelet's rule
  random             levels and lengths by --seed
  mixed              memory adversary, disk flap, PID random, network adversary

Taintlet samples once a second (network: every 4 s), as the agent does near a
threshold, or once a period if that is shorter. Its writes land at once. The kubelet's rule:
sample every 10 s, taint at the first bad sample, clear 5 min after the last one
(--eviction-pressure-transition-period). The kubelet has no such rule for
NetworkUnavailable; it is shown for comparison.

What is told of each rule and condition (bad: Degraded or Critical):
  changes   taints set plus taints cleared
  /h        the same per hour, the mean of the whole time
  most/h    the most changes within any 60 minutes
  tainted   time during which the taint is on the Node
  seen      stretches of bad input during which the taint was on the Node, of all
  delay     from the input going bad to the taint, median and max of those of the
            seen stretches that began without the taint
  missed    time during which the input is bad and the taint is not on the Node
  false     time during which the input is OK and the taint is on the Node
Unknown input is neither bad nor OK. Node writes are the requests of taintlet:
patches of the Node (taints, record), of the record alone (what people are
told), and of its status (conditions, heartbeat).
`
