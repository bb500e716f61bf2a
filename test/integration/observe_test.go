package integration

import (
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
)

// Mode Observe tells what would be done and does nothing. The configuration ends it, and an
// annotation begins it for one Node: its taint goes at once.
func TestObserve(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "observed"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick+"mode: Observe\n")
	c.WaitAgentEvent(t, node.Name, "TaintsObserved", "mode Observe for MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable: taints are reported and not set")
	versions := follow(t, c, node.Name)
	host.Memory(2)
	versions.wait(0, saying("mode Observe: would set "+memoryKey+":NoSchedule"))
	c.WaitAgentEvent(t, node.Name, "HostMemoryPressureDegraded", "mode Observe: would set "+memoryKey+":NoSchedule")
	a.WaitMetric(`taintlet_held{by="Observe",condition="MemoryPressure",what="taint"} 1`)
	for _, v := range versions.since(0) {
		if tainted(memoryKey)(v.Node) {
			t.Fatalf("an observed Node is tainted; taints were\n%s", show(versions.since(0)))
		}
	}

	a.Reconfigure(quick)
	set := versions.wait(0, tainted(memoryKey))
	c.WaitAgentEvent(t, node.Name, "TaintsEnforced", "taints are set")
	c.RunKubectl(t, "annotate", "node", node.Name, "taintlet.dev/mode=Observe")
	gone := versions.wait(set, untainted(memoryKey))
	versions.wait(gone, saying("mode Observe: would set "+memoryKey+":NoSchedule"))
	c.RunKubectl(t, "annotate", "node", node.Name, "taintlet.dev/mode-")
	versions.wait(gone, tainted(memoryKey))
}
