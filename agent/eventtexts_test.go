package agent_test

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

var update = flag.Bool("update", false, "write testdata/events.golden")

// reload is a configuration file that changes.
type reload struct {
	mu  sync.Mutex
	cfg *config.Config
	err error
}

// load returns what is new.
func (r *reload) load() (cfg *config.Config, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cfg, r.cfg = r.cfg, nil
	err, r.err = r.err, nil
	return cfg, err
}

func (r *reload) set(cfg *config.Config, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg, r.err = cfg, err
}

// testdata/events.golden has every Event that the agent words by itself, where a
// reviewer reads them in one place; agent/decide/testdata/messages.golden has the
// others. -update writes it.
func TestEventTexts(t *testing.T) {
	fixtures.CompareGolden(t, *update, "testdata/events.golden", eventTexts(t))
}

// eventTexts are the Events of an agent to which all of it happens.
func eventTexts(t *testing.T) string {
	t.Helper()
	cfg, other := config.Default(), config.Default()
	cfg.Rules, cfg.Eviction.Slots, cfg.Hash, other.Hash = cfg.Policy().BuiltInRules(), 1, "sha256:one", "sha256:two"
	pools, err := config.HostSchema().Decode([]byte(header + "overrides: [{nodeSelector: {example.com/pool: batch}, memory: {availablePercent: 7}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	w, by, files, b := &told{}, map[probes.Condition]*probe{}, &reload{}, &beside{}
	var all strings.Builder
	synctest.Test(t, func(t *testing.T) {
		a := &agent.Agent{
			Config: cfg, Client: b, Slots: &leases{free: true}, Recorder: w, Reload: files.load,
			NewProbe: func(c config.Condition) probes.Probe { return by[c.Name] },
		}
		runInBubble(t, a, by, func(_ *testing.T, by map[probes.Condition]*probe, c *client) {
			memory := by[probes.MemoryPressure]
			for _, level := range []probes.Level{probes.Degraded, probes.Critical, probes.Degraded, probes.OK} {
				memory.set(level)
				time.Sleep(5 * time.Minute)
			}
			b.write(func(node *taints.Node) { node.Annotations[taints.PausedAnnotation] = "true" })
			time.Sleep(time.Minute)
			memory.set(probes.Degraded)
			time.Sleep(5 * time.Minute)
			by[probes.NetworkUnavailable].warn(verdict.ReasonPortBlocked)
			time.Sleep(time.Minute)
			by[probes.NetworkUnavailable].say("NetworkHealthy")
			time.Sleep(time.Minute)
			by[probes.NetworkUnavailable].warn(verdict.ReasonPeersNeverReached)
			time.Sleep(time.Minute)
			files.set(nil, errors.New("memory.period: Invalid value: \"1ms\": must be 250ms to 10m"))
			time.Sleep(time.Minute)
			for _, file := range []*config.Config{other, pools} {
				files.set(file, nil)
				time.Sleep(time.Minute)
			}
			b.write(func(node *taints.Node) { node.Labels = map[string]string{"example.com/pool": "batch"} })
			time.Sleep(time.Minute)
			for i, reason := range c.reasons {
				fmt.Fprintf(&all, "before the taint: %s: %s\n", reason, c.messages[i])
			}
		})
	})
	for _, e := range w.events {
		fmt.Fprintf(&all, "%s: %s\n", e.reason, e.message)
	}
	return all.String()
}
