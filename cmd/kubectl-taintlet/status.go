package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
)

func statusVerb() *cobra.Command {
	var o status.Options
	var cluster command.Cluster
	var timeout time.Duration
	var selector string
	c := &cobra.Command{
		Use: "status [NODE…]", Short: "Show which Nodes are not healthy and which agents do not run",
		Long: `Show which Nodes are not healthy and which agents do not run.

It prints a line about the fleet, a line about the agents' DaemonSet, the findings about the installation, each
with a command to run next, and a row for each condition that is not healthy, the worst Nodes first. For named
Nodes it also prints the healthy conditions, and the taints and conditions of other programs. It reads from the
API server only, and contacts no agent.

An agent is silent when it has not written its Node for two and a half heartbeats. If the agents are not pods,
--namespace= reads the Nodes only. Use --silent-after if the heartbeat is not 5 minutes.

Exit code 3: an agent is silent or down, a condition is not OK, a finding is a failure, or there is no agent.`,
		Example: `  # Is the fleet healthy?
  kubectl taintlet status
  # Why does this Node have a taint?
  kubectl taintlet status worker-3
  # Follow an incident
  kubectl taintlet status --watch
  # Wait in a script until everything is healthy
  kubectl taintlet status --wait --timeout=30m
  # Cordon the Nodes of a zone that are not healthy
  kubectl taintlet status -l topology.kubernetes.io/zone=a -o name | xargs kubectl cordon`,
		Args: nodeNames,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := checkStatus(&o, args, selector); err != nil {
				return err
			}
			if o.Config, err = cluster.RestConfig(); err != nil {
				return err
			}
			ctx, cancel := command.Within(c.Context(), timeout)
			defer cancel()
			o.Nodes, o.Namespace = args, cluster.Namespace
			o.Out, o.Err, o.Version = c.OutOrStdout(), c.ErrOrStderr(), command.Version()
			isWell, err := status.Run(ctx, o)
			if err == nil && !isWell && !o.Watch {
				return command.ErrNotWell
			}
			return err
		},
	}
	c.ValidArgsFunction = completeNodes(&cluster)
	flags := c.Flags()
	addStatusFlags(c, &o)
	flags.StringVarP(&selector, "selector", "l", "", "show only Nodes with these `labels`, as in kubectl")
	flags.DurationVar(&timeout, "timeout", 0, "how long to wait with --wait (default: no limit)")
	cluster.Add(flags)
	return c
}

func addStatusFlags(c *cobra.Command, o *status.Options) {
	flags := c.Flags()
	command.AddChoice(c, &o.Output, "output", "o", "output format: table, wide or name, or json, yaml or jsonpath=TEMPLATE as in kubectl", append([]string{status.OutputTable, status.OutputWide, status.OutputName}, status.Formats()...)...)
	flags.BoolVar(&o.NoHeaders, "no-headers", false, "print only the rows, without headers and the lines above them")
	flags.BoolVarP(&o.Watch, "watch", "w", false, "refresh every 3 s (less often on a large cluster) until interrupted")
	flags.BoolVar(&o.Wait, "wait", false, "wait until everything is healthy")
	flags.DurationVar(&o.SilentAfter, "silent-after", 0, "how long after its last write an agent is silent (default: two and a half heartbeats)")
}

func checkStatus(o *status.Options, nodes []string, selector string) (err error) {
	switch {
	case o.Watch && o.Wait:
		return command.Usagef("--watch and --wait exclude each other")
	case selector != "" && len(nodes) > 0:
		return command.Usagef("--selector and names of Nodes exclude each other")
	case selector == "":
		return nil
	}
	if o.Selector, err = labels.Parse(selector); err != nil {
		return command.Usagef("--selector: %w", err)
	}
	return nil
}

// completeWithin is how long a shell waits for names.
const completeWithin = 3 * time.Second

func completeNodes(cluster *command.Cluster) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
		defer cancel()
		client, err := clientOf(cluster)
		if err == nil {
			err = client.EachNode(ctx, func(node *taints.Node) {
				if strings.HasPrefix(node.Name, typed) && !slices.Contains(args, node.Name) {
					names = append(names, terminal.Clean(node.Name, maxWord))
				}
			})
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// clientOf returns a client of the cluster that the flags mean.
func clientOf(cluster *command.Cluster) (*installation.Client, error) {
	restConfig, err := cluster.RestConfig()
	if err != nil {
		return nil, err
	}
	return installation.NewClient(restConfig)
}

func nodeNames(_ *cobra.Command, args []string) error {
	for _, name := range args {
		if err := command.CheckNodeName("node", name); err != nil {
			return err
		}
	}
	return nil
}
