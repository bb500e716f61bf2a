// Package security tries what somebody may do who has an agent's token, forges what an
// agent reads, or floods it: what the policies deny and what they let pass, and what an
// agent that runs as shipped makes of attacks through its port, its configuration file,
// its Node's annotations and its API server. It measures what attacks cost the agent.
package security

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/bed/fleet"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	// longEnv plays the attacks at full length.
	longEnv = "TAINTLET_LONG_ATTACKS"
	// writeEnv writes the table into README.md.
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

// On denying everything is tried that the policies deny, on attackable an agent runs as
// shipped and is attacked.
var (
	denying    = bed.Installation{Shared: cluster.Shared{Options: cluster.Options{AuditLog: true}}}
	attackable = bed.Installation{Keep: true}
)

func TestMain(m *testing.M) {
	if address := os.Getenv(floodEnv); address != "" {
		os.Exit(floodPort(address))
	}
	os.Exit(fleet.Main(m, func() error {
		program.Remove()
		return errors.Join(denying.Shared.Stop(nil), attackable.Shared.Stop(nil))
	}))
}

// program is the agent as it is shipped: the race detector would take more memory
// than the agent may.
var program = process.SharedProgram{Build: process.BuildAgent, Options: process.BuildOptions{Release: true}}

// denied counts attempts, and those that were denied.
type count struct{ attempts, denied int }

func (c *count) add(denied bool) {
	c.attempts++
	if denied {
		c.denied++
	}
}

func (c count) String() string { return fmt.Sprintf("%d of %d", c.denied, c.attempts) }
