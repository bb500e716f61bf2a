// Package attack attacks an agent that runs as it is shipped: through its port,
// its configuration file, its Node's annotations, its API server and a stolen
// token. It measures what that costs the agent.
package attack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// longEnv plays the attacks at full length.
	longEnv = "TAINTLET_LONG_ATTACKS"
	// writeEnv writes the table into docs/reliability.md.
	writeEnv = "TAINTLET_WRITE_RELIABILITY"
)

// isLong says whether the attacks are played at full length.
func isLong() bool { return os.Getenv(longEnv) != "" }

// shortOr is the number for the short form or for the long one.
func shortOr(short, long int) int {
	if isLong() {
		return long
	}
	return short
}

var shared cluster.Shared

func TestMain(m *testing.M) {
	code := shared.Run(m)
	os.RemoveAll(binary.dir) //nolint:errcheck // a temporary folder
	os.Exit(code)
}

// binary is the agent, built once.
var binary struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// program is the agent as it is shipped: the race detector would take more memory
// than the agent may.
func program(t *testing.T) string {
	t.Helper()
	binary.once.Do(func() {
		if binary.dir, binary.err = os.MkdirTemp("", "taintlet-attack-"); binary.err == nil { //nolint:usetesting // it outlives the test
			binary.path, binary.err = process.BuildAgent(context.WithoutCancel(t.Context()), binary.dir, process.BuildOptions{Release: true})
		}
	})
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return filepath.Clean(binary.path)
}

// denied counts attempts, and those that were denied.
type count struct{ attempts, denied int }

func (c *count) add(denied bool) {
	c.attempts++
	if denied {
		c.denied++
	}
}

func (c count) String() string { return fmt.Sprintf("%d of %d", c.denied, c.attempts) }
