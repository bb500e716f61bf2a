package node

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// watched is a Node that is not written, and whose versions a test sends.
type watched struct {
	Memory
	versions chan *taints.Node
}

func (w *watched) Watch(ctx context.Context, versions chan<- *taints.Node) error {
	for {
		select {
		case version := <-w.versions:
			versions <- version
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A dry run sees its own last change on each version of the Node, beside what others
// changed, until the change goes or the Node is another one.
func TestADryRunSeesItsOwnChange(t *testing.T) {
	below := &watched{Memory{"host", slog.New(slog.DiscardHandler)}, make(chan *taints.Node)}
	o, seen := NewOverlay(below, slog.New(slog.DiscardHandler)), make(chan *taints.Node)
	go o.Watch(t.Context(), seen) //nolint:errcheck // it ends with the context
	next := func(version *taints.Node) *taints.Node {
		below.versions <- version
		return <-seen
	}
	real := &taints.Node{Name: "host", UID: "1", ResourceVersion: "70"}
	first := next(real)
	ours := taints.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
	tainted := taints.Desired{
		Taints: []taints.Taint{ours}, Annotations: map[string]string{taints.RecordAnnotation: "1"},
		Conditions: []taints.NodeCondition{{Type: "HostMemoryPressure", Status: taints.ConditionTrue}},
	}
	shown := func(name string, n *taints.Node, isTainted, hasCondition bool) {
		t.Helper()
		if n.Has(ours.Pair()) != isTainted || n.Annotations[taints.RecordAnnotation] != tainted.Annotations[taints.RecordAnnotation] || (n.Condition("HostMemoryPressure") != nil) != hasCondition {
			t.Errorf("%s: %+v", name, n)
		}
	}
	written, err := o.Apply(t.Context(), first, tainted)
	if err != nil || !IsNewer(written, first) {
		t.Fatalf("%+v, %v", written, err)
	}
	shown("written", written, true, true)
	foreign := real.Clone()
	foreign.Taints = []taints.Taint{{Key: "example.com/drain", Effect: taints.NoExecute}}
	version := next(foreign)
	shown("beside a foreign taint", version, true, true)
	if len(version.Taints) != 2 || !IsNewer(version, written) {
		t.Errorf("%+v", version)
	}
	cleared := taints.Desired{Owned: []taints.Pair{ours.Pair()}, Annotations: tainted.Annotations}
	if version, err = o.Apply(t.Context(), version, cleared); err != nil {
		t.Fatal(err)
	}
	shown("cleared, and conditions as before", version, false, true)
	if _, err = o.Apply(t.Context(), version, tainted); err != nil {
		t.Fatal(err)
	}
	another := real.Clone()
	another.UID = "2"
	if version = next(another); len(version.Taints) > 0 || len(version.Conditions) > 0 || len(version.Annotations) > 0 {
		t.Errorf("another Node has what the one before had: %+v", version)
	}
	if len(real.Taints) > 0 || len(real.Conditions) > 0 {
		t.Errorf("the real Node was changed: %+v", real)
	}
}
