// Command kubectl-taintlet answers operators' questions about taintlet on a cluster and about a
// configuration. It is a plugin of kubectl, runs without kubectl as well, and does not need Linux.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/cleanup"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
)

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// completer is the name by which kubectl calls what completes the words after "kubectl
// taintlet". It is a link to this program, or a copy.
const completer = "kubectl_complete-taintlet"

// run does what the arguments ask for and returns the exit code. The first of them is
// the name by which the program was called.
func run(args []string, stdout, stderr io.Writer) int {
	called, args := strings.TrimSuffix(filepath.Base(args[0]), ".exe"), args[1:]
	if called == completer {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return command.Run(newProgram(), args, stdout, stderr)
}

// newProgram returns the program with all verbs. A new verb is a function
// that returns it, and a line here.
func newProgram() *cobra.Command {
	program := &cobra.Command{
		Use:         "kubectl-taintlet",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl taintlet"},
		Short:       "Show what taintlet does in a cluster, and what a configuration does",
		Long: `taintlet taints Nodes whose hosts are in trouble. This program shows what its agents do, checks the
installation, and explains configurations. Only cleanup changes anything.

Exit codes: 0 is success, 1 is a failure, 2 means wrong arguments or a wrong configuration, and 3 means
that something is not healthy (status, check).`,
	}
	program.AddCommand(status.Verb(), check.Verb(), cleanup.Verb("kubectl taintlet", nil, installation.CompleteNodes), configVerb(), evictionsVerb(), versionVerb())
	return program
}

// versionWithin is how long a cluster may take to answer.
const versionWithin = 10 * time.Second

func versionVerb() *cobra.Command {
	var cluster command.Cluster
	var isLocal bool
	c := &cobra.Command{
		Use: "version", Short: "Print the versions of this program, the agents and the API server", Args: cobra.NoArgs,
		Long: `Print the versions of this program, of the agents and of the API server. Without a kubeconfig it prints
only the version of this program.`,
		Example: "  # Which versions are these?\n  kubectl taintlet version",
		RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintln(c.OutOrStdout(), "taintlet", command.Version())
			client, err := installation.Connect(&cluster)
			if isLocal || errors.Is(err, command.ErrNoCluster) {
				return nil
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), versionWithin)
			defer cancel()
			return versionsOf(ctx, client, cluster.Namespace, c.OutOrStdout())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&isLocal, "client", false, "print only the version of this program")
	cluster.Add(flags)
	return c
}

func versionsOf(ctx context.Context, client *installation.Client, namespace string, w io.Writer) error {
	server, err := client.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("the version of the API server: %w", err)
	}
	pods, err := client.Pods(ctx, namespace)
	if err != nil {
		return fmt.Errorf("the versions of the agents: %w", err)
	}
	_, images := installation.Images(pods)
	_, err = fmt.Fprintf(w, "agents %s\nKubernetes %s\n", terminal.Clean(cmp.Or(images, "none in namespace "+namespace), 4*maxWord), terminal.Clean(server.GitVersion, maxWord))
	return err
}
