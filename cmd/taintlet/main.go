// Command taintlet watches the health of the host it runs on and keeps the right taints on its own
// Kubernetes Node. It runs on the host; operators use kubectl-taintlet.
package main

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/cmd/cleanup"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/probes"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run does what the arguments ask for and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	return command.Run(newProgram(), args, stdout, stderr)
}

// newProgram returns the agent, which runs without a verb, and all verbs. A new verb
// is a file with a function that returns it, and a line here.
func newProgram() *cobra.Command {
	program := agentProgram()
	program.AddCommand(onceVerb(), cleanup.Verb("taintlet", defaultNodeName, nil))
	return program
}

// The functions below declare flags that several verbs share. The default of
// a flag is in its usage where it depends on the host, so that help and the
// documentation are the same everywhere.

func addHost(flags *pflag.FlagSet, host *probes.Host) {
	flags.StringVar(&host.Root, "host-root", "/", "`directory` where the host's root file system is mounted")
	flags.StringVar(&host.Proc, "procfs", "/proc", "`directory` where the host's procfs is mounted")
	flags.StringVar(&host.Sys, "sysfs", "/sys", "`directory` where the host's sysfs is mounted")
}

func addNodeName(flags *pflag.FlagSet, name *string) {
	flags.StringVar(name, "node-name", defaultNodeName(), "`name` of the Node that this host is (default: $NODE_NAME, then the host name)")
	flags.Lookup("node-name").DefValue = ""
}

func defaultNodeName() string {
	if name := os.Getenv("NODE_NAME"); name != "" {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return "" // refused by command.CheckNodeName
	}
	return strings.ToLower(name) // as the kubelet does
}
