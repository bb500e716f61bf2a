// Command taintlet watches the health of the host it runs on and keeps the
// right taints on its own Kubernetes Node. It is what runs on a host; people have
// kubectl-taintlet.
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/command"
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
	program.Args = command.UnknownVerb
	program.AddCommand(onceVerb(), cleanupVerb())
	return program
}
