package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/cmd/words"
	"github.com/taintlet/taintlet/taints"
)

func configVerb() *cobra.Command {
	var o configOptions
	c := &cobra.Command{
		Use: "config [NODE]", Short: "Show the configuration in force, or check a file", Args: cobra.MatchAll(cobra.MaximumNArgs(1), command.NodeNames),
		Long: `Show the configuration in force, or check a file.

It reads the agents' ConfigMap, and says on how many Nodes it is in force. For NODE it shows the configuration
with the override that applies to the Node, and says which one that is. --config checks a file instead, and
--default shows the built-in configuration; these contact no API server.

Comments at the top name the fields that differ from the defaults. Comments at the end explain for each
rule how its taint stays on a Node. The output is a valid configuration file.`,
		Example: `  # Which configuration is in force?
  kubectl taintlet config
  # Which configuration is in force on this Node?
  kubectl taintlet config worker-1
  # Is this file valid?
  kubectl taintlet config --config=config.yaml
  # Show all defaults
  kubectl taintlet config --default`,
		RunE: func(c *cobra.Command, args []string) error {
			if o.isDefault && o.path != "" || len(args) > 0 && (o.isDefault || o.path != "") {
				return command.Usagef("specify only one of NODE, --config and --default")
			}
			heading, cfg, err := o.read(c.Context(), args)
			if err != nil {
				return err
			}
			rules, eviction := words.Rules(cfg), words.Eviction(cfg)
			_, err = fmt.Fprintf(c.OutOrStdout(), "# %s:\n%s\n# %s\n\n# %s\n", heading, config.HostSchema().Effective(cfg), strings.Join(rules, "\n# "), strings.Join(eviction, "\n# "))
			return err
		},
	}
	c.ValidArgsFunction = installation.CompleteNodes(&o.cluster)
	flags := c.Flags()
	flags.StringVar(&o.path, "config", "", "TaintletConfiguration `file` to check (default: the agents' ConfigMap)")
	flags.BoolVar(&o.isDefault, "default", false, "show the built-in configuration")
	o.cluster.Add(flags)
	return c
}

type configOptions struct {
	path      string
	isDefault bool
	cluster   command.Cluster
}

// read returns the configuration that was asked for, and says which one it is.
func (o *configOptions) read(ctx context.Context, nodes []string) (heading string, cfg *config.Config, err error) {
	if o.isDefault || o.path != "" {
		heading = "The built-in configuration"
		if o.path != "" {
			heading = o.path + " is valid. The whole configuration"
		}
		cfg, err = command.LoadConfig(o.path)
		return heading, cfg, err
	}
	client, err := installation.Connect(&o.cluster)
	if errors.Is(err, command.ErrNoCluster) {
		err = fmt.Errorf("%w; --default shows the built-in configuration", err)
	}
	if err != nil {
		return "", nil, err
	}
	cfg, name, err := configOfAgents(ctx, client, o.cluster.Namespace)
	if err == nil && cfg == nil {
		err = fmt.Errorf("there is no %s with a %s; --default shows the built-in configuration", name, installation.ConfigKey)
	}
	if err != nil {
		return "", nil, err
	}
	name += ", configuration " + cfg.Hash
	if len(nodes) > 0 {
		node, err := client.Node(ctx, nodes[0])
		if err != nil {
			return "", nil, err
		}
		if cfg = cfg.For(node.Labels); cfg.Override != "" {
			name += " with " + terminal.Clean(cfg.Override, maxWord)
		}
		return name + inForceOn(node, cfg.Hash), cfg, nil
	}
	all, agents := 0, map[string]int{}
	err = client.EachNode(ctx, nil, "", func(node *taints.Node) { all++; agents[configOf(node)]++ })
	return fmt.Sprintf("%s, in force on %d of %s", name, agents[cfg.Hash], terminal.Count(all-agents[""], "Node")), cfg, err
}

// configOfAgents returns the configuration of the agents' ConfigMap, and what people call that;
// nil: there is none.
func configOfAgents(ctx context.Context, client *installation.Client, namespace string) (cfg *config.Config, name string, err error) {
	name = fmt.Sprintf("ConfigMap %s/%s", namespace, installation.Account)
	i := &installation.Installation{Namespace: namespace}
	if err := client.ReadConfig(ctx, i); err != nil {
		return nil, name, err
	}
	if cfg, err = i.Configuration(); err != nil {
		return nil, name, fmt.Errorf("the agents refuse the %s, and keep the last valid configuration, which only they know: %w", name, err)
	}
	return cfg, name, nil
}

// inForceOn says whether a configuration is in force on a Node, and whether it is only observed
// there.
func inForceOn(node *taints.Node, hash string) (text string) {
	if mode := node.Annotations[taints.ModeAnnotation]; mode != "" && mode != string(decide.Enforce) {
		text = ", in mode Observe by the annotation " + taints.ModeAnnotation
	}
	name := terminal.Clean(node.Name, maxWord)
	switch used := configOf(node); used {
	case hash:
		return text + ", in force on Node " + name
	case "":
		return text + ". No agent reports what is in force on Node " + name
	default:
		return fmt.Sprintf("%s. Node %s still uses %s, which only its agent knows", text, name, used)
	}
}

// configOf is the hash of the configuration that a Node's agent uses; empty: nobody says.
func configOf(node *taints.Node) string {
	status, _ := decide.ReadRecord(node) // of one that cannot be read nobody says it
	return terminal.Clean(status.Config, maxWord)
}
