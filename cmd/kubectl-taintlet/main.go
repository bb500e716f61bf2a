// Command kubectl-taintlet is what people ask about taintlet on a cluster, and about a
// configuration. It is a plugin of kubectl, runs by itself as well, and needs no Linux.
package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/cleanup"
	"github.com/taintlet/taintlet/cmd/command"
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

// newProgram returns the program with all verbs. A new verb is a file with a function
// that returns it, and a line here.
func newProgram() *cobra.Command {
	program := &cobra.Command{
		Use:         "kubectl-taintlet",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl taintlet"},
		Short:       "show what taintlet does on a cluster, and what a configuration does",
		Long: `taintlet keeps the right taints on each Node of a cluster. This program shows its work, checks the
installation, and explains configurations. Only cleanup changes something.

Exit codes: 0 is success, 1 is a failure, 2 means wrong arguments or a wrong configuration, and 3 means
that something is not healthy (status, check).`,
	}
	program.AddCommand(statusVerb(), checkVerb(), cleanup.Verb("kubectl taintlet", nil), configVerb(), evictionsVerb(), versionVerb())
	return program
}
