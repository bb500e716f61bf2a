package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/agent/config"
)

func configVerb() verb {
	return verb{
		name:      "config",
		arguments: "[NODE…]",
		summary:   "check a configuration, show all of it, and what it would do",
		about: `It prints the whole configuration. A comment marks each field that the file sets, and gives its
default. Comments at the end say for each rule how its taint stays on a Node, and why. The output is
itself a configuration file.

With --evictions it lists instead which pods the NoExecute taints of the rules for level Critical would
take from these Nodes: who goes at once, who goes later (tolerationSeconds) and who stays. Without
NODE it counts them for every Node.

With --replay it tells instead what this configuration would have done on samples that "taintlet once
--record" wrote: when each condition would have been set and cleared, and which taints that asks for. It
asks no API server.`,
		examples: []example{
			{"Is this file valid, and what does it do?", "taintlet config --config=config.yaml"},
			{"All defaults", "taintlet config"},
			{"Which pods would an eviction of this Node take?", "taintlet config --config=config.yaml --evictions worker-1"},
			{"How many on each Node?", "taintlet config --config=config.yaml --evictions"},
			{"What would these thresholds have done?", "taintlet config --config=config.yaml --replay=host.csv"},
		},
		bind: func(flags *pflag.FlagSet) func(context.Context, call) error {
			o := &configOptions{}
			addConfig(flags, &o.config)
			flags.BoolVar(&o.evictions, "evictions", false, "list what an eviction would take; asks the API server")
			flags.StringVar(&o.replay, "replay", "", "tell what the configuration would have done on the samples in this CSV `file`")
			annotate(flags, "replay", isFile)
			o.cluster.add(flags)
			addLifecycleController(flags, &o.lifecycleController)
			return o.run
		},
	}
}

// configOptions are the flags of the verb.
type configOptions struct {
	config              string
	evictions           bool
	replay              string
	cluster             clusterFlags
	lifecycleController bool
}

func (o *configOptions) run(ctx context.Context, c call) error {
	cfg, text, err := config.HostSchema().Effective(o.config)
	if err != nil {
		return usageError{err}
	}
	if o.evictions && o.replay != "" {
		return usageError{errors.New("--replay goes without --evictions: a recording has no pods")}
	}
	if o.evictions {
		restConfig, err := o.cluster.restConfig()
		if err != nil {
			return err
		}
		return showEvictions(ctx, cfg, restConfig, c.args, c.stdout)
	}
	if len(c.args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q: Nodes go with --evictions", c.args[0])}
	}
	if o.replay != "" {
		return replayFile(cfg, o.replay, o.lifecycleController, c.stdout)
	}
	where := "The built-in configuration"
	if o.config != "" {
		where = o.config + " is valid. The whole configuration"
	}
	_, err = fmt.Fprintf(c.stdout, "# %s:\n%s", where, text)
	return errors.Join(err, writeComments(c.stdout, rulesInWords(cfg, o.lifecycleController), evictionInWords(cfg)))
}

// writeComments writes paragraphs of lines as comments of YAML.
func writeComments(w io.Writer, paragraphs ...[]string) error {
	for _, lines := range paragraphs {
		fmt.Fprintln(w)
		for _, line := range lines {
			if _, err := fmt.Fprintf(w, "# %s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}
