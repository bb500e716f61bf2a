package security

import (
	"testing"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
)

// What the agent has to say may be longer than the policies let pass: 32 paths of
// up to 4096 bytes. Its write is allowed all the same.
func TestLongMessagePasses(t *testing.T) {
	c := denying.Require(t)
	const name = "talkative"
	c.Register(t, name)
	agent, err := apiserver.NewClient(bed.AgentOf(t, c, name), name)
	if err != nil {
		t.Fatal(err)
	}
	long := letters(32 * 4096)
	desired := taints.Desired{Conditions: []taints.NodeCondition{{Type: "HostDiskPressure", Status: taints.ConditionUnknown, Reason: "StatfsBlocked", Message: long}}}
	node, err := agent.Apply(t.Context(), apiserver.NodeOf(c.GetNode(t, name)), desired)
	if err != nil {
		t.Errorf("%.300s", err.Error())
	}
	if err := agent.Announce(t.Context(), node, "Try", long); err != nil {
		t.Errorf("%.300s", err.Error())
	}
}
