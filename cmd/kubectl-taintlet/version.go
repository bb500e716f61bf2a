package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// versionWithin is how long a cluster may take to answer.
const versionWithin = 10 * time.Second

func versionVerb() *cobra.Command {
	var cluster command.Cluster
	var isLocal bool
	c := &cobra.Command{
		Use: "version", Short: "print the versions of this program, the agents and the API server", Args: cobra.NoArgs,
		Long: `Print the versions of this program, of the agents and of the API server. Without a kubeconfig it prints
that of this program.`,
		Example: "  # Which versions are these?\n  kubectl taintlet version",
		RunE: func(c *cobra.Command, _ []string) error {
			out := c.OutOrStdout()
			fmt.Fprintln(out, "taintlet", command.Version())
			client, err := clientOf(&cluster)
			if isLocal || errors.Is(err, command.ErrNoCluster) {
				return nil
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), versionWithin)
			defer cancel()
			return versionsOf(ctx, client, cluster.Namespace, out)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&isLocal, "client", false, "print the version of this program only")
	cluster.Add(flags)
	return c
}

// versionsOf prints the versions of a cluster: those of its agents and that of its API server.
func versionsOf(ctx context.Context, client *installation.Client, namespace string, w io.Writer) error {
	server, err := client.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("the version of the API server: %w", err)
	}
	pods, err := client.Pods(ctx, namespace)
	if err != nil {
		return fmt.Errorf("the versions of the agents: %w", err)
	}
	counts := map[string]int{}
	for _, pod := range pods {
		if image := installation.Agent(&pod.Spec).Image; image != "" {
			counts[terminal.Clean(installation.VersionOf(image), maxWord)]++
		}
	}
	var agents []string
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		agents = append(agents, fmt.Sprintf("%s (%d)", v, counts[v]))
	}
	_, err = fmt.Fprintf(w, "agents %s\nKubernetes %s\n", cmp.Or(strings.Join(agents, ", "), "none in namespace "+namespace), terminal.Clean(server.GitVersion, maxWord))
	return err
}
