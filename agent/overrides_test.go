package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// A label that changes while the file is refused does not end that complaint.
func TestOverrideChangesBesideARefusal(t *testing.T) {
	b := &beside{}
	r := &reload{}
	file, err := config.HostSchema().Decode([]byte(header + "overrides: [{nodeSelector: {pool: slow}, memory: {availablePercent: 7}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.set(nil, context.DeadlineExceeded)
	w, by := &told{}, map[probes.Condition]*probe{}
	a := &agent.Agent{Config: file, Client: b, Recorder: w, Reload: r.load, NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] }}
	runAgent(t, a, by, func(*testing.T, map[probes.Condition]*probe, *client) {
		time.Sleep(soon)
		b.write(func(node *taints.Node) { node.Labels = map[string]string{"pool": "slow"} })
		time.Sleep(time.Second)
	})
	var all []string
	for _, e := range w.events {
		all = append(all, e.reason+": "+e.message)
	}
	text := strings.Join(all, "\n")
	if want := "OverrideChanged: the labels of the node match overrides[0] {pool=slow}, before they matched no override: memory.availablePercent 5 → 7"; !strings.Contains(text, want) || strings.Contains(text, "ConfigurationReloaded") {
		t.Errorf("Events:\n%s\nwant %s", text, want)
	}
}
