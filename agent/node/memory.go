package node

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/taintlet/taintlet/taints"
)

// Memory is a Node without an API server, which nobody writes. Apply answers
// with the Node as it would be, and keeps nothing.
type Memory struct {
	name string
	log  *slog.Logger
}

// NewMemory returns a Node of that name without any taint.
func NewMemory(name string, log *slog.Logger) *Memory { return &Memory{name, log} }

// Watch sends the Node once.
func (m *Memory) Watch(ctx context.Context, versions chan<- *taints.Node) error {
	select {
	case versions <- &taints.Node{Name: m.name, UID: "dry-run", ResourceVersion: "1"}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// Apply returns the next version of the base, with what is desired.
func (m *Memory) Apply(_ context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	version, err := strconv.ParseUint(base.ResourceVersion, 10, 64)
	if err != nil {
		return base, err
	}
	after := desired.ApplyTo(base)
	after.ResourceVersion = strconv.FormatUint(version+1, 10)
	return after, nil
}

// Announce does nothing: nobody reads Events of this Node.
func (m *Memory) Announce(context.Context, *taints.Node, string, string) error { return nil }

// KeepPolicy is there: the run shows what a complete installation does.
func (m *Memory) KeepPolicy(context.Context, bool) (isPresent bool, version string, err error) {
	m.log.Info("dry run: assuming that the admission policy " + taints.KeepPolicyName + " is installed")
	return true, "dry-run", nil
}
