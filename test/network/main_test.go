// Package network breaks the network between agents in every way that it is known to
// break. The agents run on hosts that are network namespaces.
package network

import (
	"os"
	"testing"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

func TestMain(m *testing.M) { os.Exit(fleet.Main(m, func() error { return nil })) }

const (
	hosts = fleet.Hosts
	// few is the size of the small cluster.
	few = 3
)

// scene is the hosts, the control plane and the agents, with what these tests do to them.
type scene struct{ *fleet.Scene }

func require(t *testing.T) scene {
	t.Helper()
	return scene{fleet.Require(t)}
}
