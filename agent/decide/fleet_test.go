package decide_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// fleet is agents that hear one another, without Nodes' network between them: K of
// the others each, every 5 s, each at moments of its own.
type fleet struct {
	agents []*member
	random *rand.Rand
	now    time.Duration
}

type member struct {
	*sim
	peers []*member
	// phase is when in each 5 s it asks, changes when a new configuration is in
	// force there. bad: its samples are bad.
	phase   int
	changes time.Duration
	bad     bool
}

const (
	asksEvery = 5 // seconds
	asksPeers = 12
)

func newFleet(size int, seed uint64) *fleet {
	f := &fleet{random: random(seed)}
	for range size {
		s := newSim(config.Default().Policy())
		f.agents = append(f.agents, &member{sim: s, phase: f.random.IntN(asksEvery), changes: -1})
	}
	for i, m := range f.agents {
		for _, j := range f.random.Perm(size) {
			if j != i && len(m.peers) < asksPeers {
				m.peers = append(m.peers, f.agents[j])
			}
		}
	}
	return f
}

// run runs the fleet second by second. inForce is called when an agent's new
// configuration is in force.
func (f *fleet) run(d time.Duration, inForce func(*member)) {
	for end := f.now + d; f.now < end; f.now += time.Second {
		for _, i := range f.random.Perm(len(f.agents)) {
			m := f.agents[i]
			if m.changes == f.now {
				inForce(m)
			}
			if (int(f.now.Seconds())+m.phase)%asksEvery == 0 {
				m.ask()
			}
			symbol := "ok"
			if m.bad {
				symbol = "bad"
			}
			m.after(time.Second, sample(probes.MemoryPressure, symbol))
		}
	}
}

func (m *member) ask() {
	share := decide.Share{Asked: len(m.peers)}
	for _, p := range m.peers {
		if p.state.Requested(probes.MemoryPressure) > probes.OK {
			share.Bad++
		}
	}
	m.sim.peers = decide.Peers{
		Known: len(m.peers), Rounds: m.sim.peers.Rounds + 1,
		Shares: map[probes.Condition]decide.Share{probes.MemoryPressure: share},
	}
}

func (f *fleet) tainted() int {
	count := 0
	for _, m := range f.agents {
		count += len(m.read.Taints)
	}
	return count
}

// rollOut puts a new configuration into force within a time, on each agent at a
// moment of its own.
func (f *fleet) rollOut(within time.Duration) {
	for _, m := range f.agents {
		m.changes = f.now + time.Duration(f.random.Int64N(int64(within/time.Second)))*time.Second
	}
}

// A wrong threshold makes every host Degraded. Less than 40 % of the fleet get
// the taint, however fast the configuration spreads: at once, within the jitter,
// or as kubelets renew ConfigMaps. When the threshold is right again, all are free.
func TestWrongThresholdTaintsFewerThanTwoFifths(t *testing.T) {
	for _, size := range []int{6, 8, 13, 20, 100} {
		for _, within := range []time.Duration{time.Second, 10 * time.Second, 100 * time.Second, 400 * time.Second} {
			t.Run(fmt.Sprint(size, " within ", within), func(t *testing.T) {
				var worst []int
				for seed := range uint64(quick(10)) {
					f := newFleet(size, seed)
					f.run(6*time.Minute, nil)
					f.rollOut(within)
					f.run(within+2*time.Minute, func(m *member) { m.cfg, m.bad = reread(m.cfg), true })
					worst = append(worst, f.tainted())
					if seed > 0 {
						continue
					}
					f.rollOut(within)
					f.run(within+10*time.Minute, func(m *member) {
						m.cfg, m.bad = reread(m.cfg), false
						m.state = m.state.Forget(probes.MemoryPressure)
					})
					if left := f.tainted(); left > 0 {
						t.Errorf("%d are tainted although the threshold is right again", left)
					}
				}
				t.Logf("tainted of %d: %d to %d", size, slices.Min(worst), slices.Max(worst))
				if 5*slices.Max(worst) >= 2*size {
					t.Errorf("%d of %d are tainted", slices.Max(worst), size)
				}
			})
		}
	}
}

// Peers hear of a level only while the samples can tell, and the Node is not under maintenance:
// neither a decided Degraded nor one that is held back, once the host cannot be read.
func TestPeersHearUnknown(t *testing.T) {
	s := newSim(config.Default().Policy())
	for range 20 {
		s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	}
	if got := s.state.Shared(probes.MemoryPressure); got != probes.Degraded {
		t.Fatalf("peers hear %s of a bad host", got)
	}
	s.after(time.Second, sample(probes.MemoryPressure, "unknown"))
	if got := s.state.Shared(probes.MemoryPressure); got != probes.Unknown {
		t.Errorf("peers hear %s of a host that cannot be read", got)
	}
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	if got := s.state.Shared(probes.MemoryPressure); got != probes.Degraded {
		t.Errorf("peers hear %s of a host that is bad again", got)
	}
	s.edit(func(node *taints.Node) {
		node.Conditions = append(node.Conditions, taints.NodeCondition{Type: "DrainInProgress", Status: taints.ConditionTrue})
	})
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	if got := s.state.Shared(probes.MemoryPressure); got != probes.Unknown {
		t.Errorf("peers hear %s of a host under maintenance", got)
	}
}
