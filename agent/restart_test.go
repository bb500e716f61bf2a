package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// restarted is a client whose Node had its heartbeat some time ago: all is well.
type restarted struct {
	*client
	told time.Duration // ago
}

const toldBefore = 2 * time.Minute

func (c *restarted) Watch(ctx context.Context, nodes chan<- *taints.Node) error {
	node := &taints.Node{Name: "host", UID: "1", ResourceVersion: "1"}
	for _, name := range config.Default().Names() {
		node.Conditions = append(node.Conditions, taints.NodeCondition{
			Type: decide.ConditionType(name), Status: taints.ConditionFalse, Reason: "Seen", Message: "another value",
			LastHeartbeatTime: time.Now().Add(-c.told),
		})
	}
	repair := describe.Repair{}.Node(decide.RepairType, time.Now())
	repair.LastHeartbeatTime = time.Now().Add(-c.told)
	node.Conditions = append(node.Conditions, repair)
	select {
	case nodes <- node:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// A restart puts no heartbeat off: the next one comes 5 min ± 10 % after the one that
// stands on the Node, and then one each 5 min.
func TestRestartGoesOnWithTheHeartbeat(t *testing.T) {
	by := map[probes.Condition]*probe{}
	a := &agent.Agent{
		Config: config.Default(), Client: &restarted{told: toldBefore}, Recorder: &agent.Told{},
		NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] },
	}
	runAgent(t, a, by, func(t *testing.T, _ map[probes.Condition]*probe, c *client) {
		const began = 10 * time.Second // by runAgent
		time.Sleep(270*time.Second - toldBefore - began - time.Second)
		if got := c.count(); got != 0 {
			t.Errorf("%d writes before the heartbeat", got)
		}
		time.Sleep(62 * time.Second)
		if got := c.count(); got != 1 {
			t.Errorf("%d heartbeats", got)
		}
		time.Sleep(time.Hour)
		if got := c.count() - 1; got < 10 || got > 14 {
			t.Errorf("%d heartbeats in an hour", got)
		}
	})
}

// Without heartbeats, one that stands on the Node brings none, not even by a clock that is ahead.
func TestRestartWithoutHeartbeats(t *testing.T) {
	cfg, by := config.Default(), map[probes.Condition]*probe{}
	cfg.Heartbeat.Duration = 0
	a := &agent.Agent{
		Config: cfg, Client: &restarted{told: -900 * time.Millisecond}, Recorder: &agent.Told{},
		NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] },
	}
	runAgent(t, a, by, func(t *testing.T, _ map[probes.Condition]*probe, c *client) {
		if time.Sleep(time.Hour); c.count() > 1 {
			t.Errorf("%d writes", c.count())
		}
	})
}
