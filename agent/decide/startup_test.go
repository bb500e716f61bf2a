package decide_test

import (
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Whatever the host, the peers and others do: the start-up taint goes only when this
// process has found every condition OK, once from each Node object unless somebody forges
// the record, and no foreign taint goes with it.
func TestStartupTaintGoesOnceAndAlone(t *testing.T) {
	const key = "example.com/starting"
	removals, kept := 0, 0
	for seed := range uint64(quick(100)) {
		r := random(seed)
		cfg := restless(config.Default().Policy())
		cfg.Startup = decide.Startup{Taint: key, Timeout: decide.Duration{Duration: time.Minute}}
		forges, s := seed%2 == 0, newSim(cfg)
		isOurs := func(p taints.Pair) bool {
			return cfg.Produces(p) || p.Key == key && p.Effect != taints.PreferNoSchedule
		}
		foreign := func(list []taints.Taint) []taints.Taint {
			return slices.DeleteFunc(slices.Clone(list), func(t taints.Taint) bool { return isOurs(t.Pair()) })
		}
		newest, freed := map[probes.Condition]probes.Observation{}, map[string]bool{}
		s.onWrite = func(s *sim, c taints.Desired) {
			next, _ := c.Differs(s.read.Node)
			if before, after := foreign(s.read.Taints), foreign(next); !taints.Equal(before, after) {
				t.Fatalf("seed %d: foreign taints were %v, would be %v", seed, before, after)
			}
			wasFreed := freed[s.read.UID]
			for _, effect := range []taints.Effect{taints.NoSchedule, taints.NoExecute} {
				pair := taints.Pair{Key: key, Effect: effect}
				switch goes := !(&taints.Node{Taints: next}).Has(pair); {
				case !s.read.Has(pair):
					if !goes {
						t.Fatalf("seed %d: sets %s", seed, pair)
					}
				case goes:
					removals++
					if wasFreed && !forges {
						t.Fatalf("seed %d: %s goes a second time", seed, pair)
					}
					freed[s.read.UID] = true
					for _, name := range names() {
						if o := newest[name]; o.Level != probes.OK || len(o.NeverHealthy) > 0 || s.state.Level(name) != probes.OK {
							t.Fatalf("seed %d: %s goes while %s is %+v", seed, pair, name, o)
						}
					}
				default:
					kept++
				}
			}
		}
		for range 300 {
			s.edit(func(n *taints.Node) {
				meddle(n, r, isOurs)
				switch pair := (taints.Pair{Key: key, Effect: []taints.Effect{taints.NoSchedule, taints.NoExecute, taints.PreferNoSchedule}[r.IntN(3)]}); {
				case r.IntN(20) == 0 && !n.Has(pair):
					n.Taints = append(n.Taints, pair.With(""))
				case r.IntN(60) == 0: // a new Node object
					*n = taints.Node{Name: "host", UID: n.UID + "1", Annotations: map[string]string{}, Taints: []taints.Taint{pair.With("")}}
				case forges && r.IntN(20) == 0:
					n.Annotations[taints.RecordAnnotation] = `{"version":1,"revision":9,"freed":"1","owned":["example.com/f1:NoSchedule","` + key + `:PreferNoSchedule"]}`
				}
			})
			s.peers = decide.Peers{Known: 12, Rounds: s.peers.Rounds + 1}
			if r.IntN(40) == 0 {
				clear(newest)
				s.restart(false, 0)
			}
			name, symbol := names()[r.IntN(4)], "ok"
			if r.IntN(3) == 0 {
				symbol = []string{"unknown", "bad", "never well", "certain", "near"}[r.IntN(5)]
			}
			newest[name] = sample(name, symbol)
			s.after(20*time.Second, newest[name])
		}
	}
	if removals == 0 || kept == 0 {
		t.Errorf("%d removals, %d writes that kept the taint", removals, kept)
	}
	t.Logf("%d removals, %d writes that kept the taint", removals, kept)
}
