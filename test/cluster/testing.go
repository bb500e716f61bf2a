package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// requireEnv lists, separated by commas, what tests may not skip for want of.
const requireEnv = "TAINTLET_REQUIRE"

// Required says whether TAINTLET_REQUIRE lists the thing, such as controlplane.
func Required(thing string) bool {
	return slices.Contains(strings.Split(os.Getenv(requireEnv), ","), thing)
}

// SkipUnlessRequired skips a test that needs a control plane, and says how to
// run it, unless TAINTLET_REQUIRE asks for one. It does so even when one is
// built, so that the same command always runs the same tests.
func SkipUnlessRequired(t testing.TB) {
	t.Helper()
	if !Required("controlplane") {
		t.Skip("needs a control plane: run `make test`, or set " + requireEnv + "=controlplane (the first build takes some minutes)")
	}
}

// New starts a control plane for one test and stops it when the test ends.
// Without TAINTLET_REQUIRE=controlplane the test is skipped.
func New(t testing.TB, options Options) *Cluster {
	t.Helper()
	SkipUnlessRequired(t)
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		showLogs(t, c)
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Shared is one control plane for all tests of a package, started by the first
// that requires it:
//
//	var shared cluster.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestX(t *testing.T) {
//		c := shared.Require(t)
//
// Nodes and cluster-wide objects are shared too: tests choose names of their own.
type Shared struct {
	Options Options

	once    sync.Once
	cluster *Cluster
	err     error
}

// Run runs the package's tests and then stops the control plane. It returns the
// exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if err := s.Stop(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Stop stops the control plane if any test has required it, after a last check,
// which may be nil.
func (s *Shared) Stop(check func(*Cluster) error) error {
	if s.cluster == nil {
		return nil
	}
	var err error
	if check != nil {
		err = check(s.cluster)
	}
	return errors.Join(err, s.cluster.Stop())
}

// Require returns the control plane. Without TAINTLET_REQUIRE=controlplane the
// test is skipped.
func (s *Shared) Require(t testing.TB) *Cluster {
	t.Helper()
	SkipUnlessRequired(t)
	s.once.Do(func() {
		options := s.Options
		if options.Progress == nil {
			options.Progress = os.Stderr
		}
		// Not the test's context: others go on using the cluster.
		s.cluster, s.err = Start(context.WithoutCancel(t.Context()), options)
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() { showLogs(t, s.cluster) })
	return s.cluster
}

func showLogs(t testing.TB, c *Cluster) {
	t.Helper()
	if t.Failed() {
		t.Log(c.Tail(8))
	}
}
