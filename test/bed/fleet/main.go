// Package fleet runs agents on hosts that are network namespaces, with an overlay,
// DNS servers and the real API server between them, and records what becomes of their
// Nodes. A suite that uses it hands its TestMain to Main.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// agentEnv tells the process in the namespaces where the agent is, which was
// built outside of them.
const agentEnv = "TAINTLET_NETBED_AGENT"

// Main runs the tests of a package in namespaces of their own, ends the Scene if one of
// them required it, and what else they share, and returns the exit code. Where the tests of
// the network are not required, it runs the tests where it is.
func Main(m *testing.M, end func() error) int {
	folder, err := os.MkdirTemp("", "taintlet-network-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	return bed.RunInNamespaces(func() error { return buildAll(folder) }, func() int {
		code := m.Run()
		if err := errors.Join(end(), theStage.scene.close()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		return code
	})
}

// buildAll builds what may need the network of the host to be built: there is
// none in the namespaces. The agent is the one that is shipped, not one with the
// race detector: these tests are about time.
func buildAll(folder string) error {
	ctx := context.Background()
	if _, err := cluster.Build(ctx, os.Stderr); err != nil {
		return err
	}
	if _, err := bed.BuildHelm(); err != nil {
		return err
	}
	agent, err := process.BuildAgent(ctx, folder, process.BuildOptions{Release: true})
	if err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // agents are not root
		return err
	}
	return os.Setenv(agentEnv, agent)
}
