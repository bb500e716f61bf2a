// Package integration runs the agent as users run it, as a process, against a
// real API server, controller manager and scheduler.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// keeping has the admission policy of deploy/keep.yaml, plain has not. unusual
// has no controller manager, and an admission plugin that is off by default.
var (
	keeping = newControlPlane(cluster.Options{})
	plain   = newControlPlane(cluster.Options{})
	unusual = newControlPlane(cluster.Options{WithoutControllerManager: true, Args: map[string][]string{
		cluster.APIServer: {"--enable-admission-plugins=PodTolerationRestriction"},
	}})
)

// inParallel is how many tests run at a time unless -parallel says otherwise.
// They wait far more than they compute, so the number of CPUs is no measure.
const inParallel = "16"

func TestMain(m *testing.M) {
	if count := os.Getenv(threadsEnv); count != "" {
		os.Exit(holdThreads(count))
	}
	if err := flag.Set("test.parallel", inParallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, p := range []*controlPlane{keeping, plain, unusual} {
		// No request of an agent may have been refused by the permissions and the
		// policies as shipped, and every Event has to be documented.
		err := p.shared.Stop(func(c *cluster.Cluster) error { return errors.Join(noneRefused(c), eventsAreDocumented(c)) })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	binary.Remove()
	plugin.Remove()
	os.Exit(code)
}

// controlPlane is started by the first test that needs it.
type controlPlane struct {
	shared cluster.Shared
	once   sync.Once
	err    error
}

func newControlPlane(options cluster.Options) *controlPlane {
	options.AuditLog = true
	return &controlPlane{shared: cluster.Shared{Options: options}}
}

func (p *controlPlane) require(t *testing.T) *cluster.Cluster {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	if p == keeping {
		cluster.SkipWithoutMutatingAdmissionPolicy(t)
	}
	c := p.shared.Require(t)
	p.once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		grantAgents(ctx, t, c)
		if p == keeping {
			p.err = c.InstallKeep(ctx)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return c
}

// pressured returns a control plane on which the agent's taint of a well-known
// key stays, and the key it has there: the policy keeps it, or, on a release
// that cannot have the policy, it is the stand-in.
func pressured(t *testing.T, key string) (*cluster.Cluster, string) {
	t.Helper()
	if cluster.HasMutatingAdmissionPolicy(t) {
		return keeping.require(t), key
	}
	_, word, _ := strings.Cut(key, "/")
	return plain.require(t), "taintlet.dev/" + word
}

// binary is the agent and plugin is kubectl-taintlet, with the race detector when the tests
// have it.
var (
	binary = process.SharedProgram{Build: process.BuildAgent, Options: process.BuildOptions{Race: process.RaceEnabled}}
	plugin = process.SharedProgram{Build: process.BuildPlugin, Options: process.BuildOptions{Race: process.RaceEnabled}}
)
