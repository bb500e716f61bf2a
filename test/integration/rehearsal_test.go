package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/taintlet/taintlet/test/fixtures"
)

// With --dry-run=server an agent goes through all that it would do, up to an
// eviction and back. The API server checks every write and keeps none.
func TestDryRunOnTheServer(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "rehearsed", 1)
	c, name := f.c, "rehearsed"
	node, host := c.Register(t, name), fixtures.NewHost(t)
	host.Tasks(calmTasks)
	pod := boundPod(t, c, "rehearsed", name, tolerating())
	a := startAgentAs(t, identityIn(t, c, f.namespace, name), name, host, evicting+oneSlot, "--namespace="+f.namespace, "--dry-run=server")
	a.WaitLog(`would set the node condition" type=HostPIDPressure status=False`)
	host.Tasks(criticalTasks)
	a.WaitLog(`would change the taints of the node" from=\[\] to="?\[` + f.lesser + `:NoSchedule`) // perhaps both in one patch
	a.WaitLog(`dry run: would write an event" type=Warning reason=HostPIDPressureCritical`)
	a.WaitLog(`would change the taints of the node" .* to=".*pid-pressure:NoExecute`)
	a.WaitLog(`dry run: would take an eviction slot`)
	// With another version of the real Node, its own last change stays on what it
	// sees.
	if err := node.Heartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	host.Tasks(calmTasks)
	a.WaitLog(`would change the taints of the node" .* to=\[\]`)
	a.WaitLog(`dry run: would give the eviction slot back`)
	staysSoFar(t, c, pod)
	now := c.GetNode(t, name)
	if len(now.Spec.Taints) > 0 || now.Annotations["taintlet.dev/record"] != "" || strings.Contains(fmt.Sprint(conditionTypes(now)), "Host") || f.holder() != "" {
		t.Errorf("something was kept: taints %v, annotations %v, conditions %v, slot %q", now.Spec.Taints, now.Annotations, conditionTypes(now), f.holder())
	}
	events, err := c.Client().CoreV1().Events(corev1.NamespaceDefault).List(t.Context(), byName("involvedObject.name", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Source.Component == "taintlet" {
			t.Errorf("an Event was kept: %s", event.Reason)
		}
	}
	for _, word := range []string{"TaintContested", "TaintLost", "RecordRefused", "cannot write", "lacks a part"} {
		if strings.Contains(a.Output.String(), word) {
			t.Errorf("the log has %s", word)
		}
	}
	writes := sets.New[string]()
	requests, err := c.Requests("system:serviceaccount:" + f.namespace + ":taintlet")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if r.Verb == "get" || r.Verb == "list" || r.Verb == "watch" {
			continue
		}
		writes.Insert(r.Verb + " " + r.Resource())
		if !strings.Contains(r.RequestURI, "dryRun=All") || r.ResponseStatus.Code >= 300 {
			t.Errorf("%s %s: %d %s", r.Verb, r.RequestURI, r.ResponseStatus.Code, r.ResponseStatus.Message)
		}
	}
	if want := sets.New("patch nodes", "patch nodes/status", "create events", "update leases"); !writes.Equal(want) {
		t.Errorf("writes %v, want %v", sets.List(writes), sets.List(want))
	}
}
