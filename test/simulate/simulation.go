package main

import (
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// course is what happened to one condition.
type course struct {
	condition probes.Condition
	// input is the level, taintlet and kubelet the number of taints on the
	// Node that each rule put there.
	input, taintlet, kubelet track
}

// writes are the requests that taintlet would have sent.
type writes struct {
	Node   int `json:"node"`   // taints and record
	Told   int `json:"told"`   // record alone: what people are told
	Status int `json:"status"` // conditions
}

// outcome is what happened to all conditions of the input.
type outcome struct {
	courses []*course // in the order in which conditions are shown
	writes  writes
}

// simulate runs the input through both rules. followUp: taintlet samples again
// soon after a bad sample, as its runner does.
func simulate(cfg *config.Config, in *input, followUp bool) *outcome {
	s := newSimulation(cfg, in, followUp)
	for now := s.nextEvent(); now < in.duration; now = s.nextEvent() {
		s.now = now
		s.happen()
	}
	out := &outcome{writes: s.writes}
	for _, h := range s.subjects {
		if _, shown := in.sources[h.condition]; shown {
			out.courses = append(out.courses, &h.course)
		}
	}
	return out
}

// subject is one condition of the simulated host and all who sample it.
type subject struct {
	course
	source      source
	sample      sample
	holds       time.Duration // until when the sample holds
	kubeletRule kubeletRule
	sampleAt    time.Duration // taintlet's next sample
	period      time.Duration
	soon        time.Duration // from a bad sample to the next one, while undecided
}

func (h *subject) held() answers {
	return answers{taintlet: h.taintlet.last() > 0, kubelet: h.kubelet.last() > 0}
}

// ask takes in what the source says now.
func (h *subject) ask(now time.Duration) {
	h.sample, h.holds = h.source.at(now, h.held())
	h.input.add(now, int(h.sample.level))
}

// nearInterval is how many of its shortest intervals the agent leaves between two
// samples of a condition that is decided. The simulator does the same all the
// time: its input has levels, and does not say how near a threshold is.
const nearInterval = 4

// simulation is a host, its Node, the decider and the kubelet's rule. Nobody
// else touches the Node, and every write lands at once.
type simulation struct {
	cfg      *config.Config
	policy   *decide.Policy
	boot     decide.Boot
	state    decide.State
	node     *decide.Node
	facts    taints.Facts
	subjects []*subject
	now      time.Duration

	kubeletAt, heartbeatAt time.Duration
	writes                 writes
	observation            [1]probes.Observation
}

func newSimulation(cfg *config.Config, in *input, followUp bool) *simulation {
	boot := decide.Boot{ID: "simulated", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := &simulation{
		cfg:    cfg,
		policy: cfg.Policy(),
		boot:   boot,
		state:  decide.New(boot, "simulation"),
		node:   decide.Read(&taints.Node{Name: "simulated", UID: "1", ResourceVersion: "1"}),
		facts:  taints.Facts{KeepPolicy: true, StandInPrefix: cfg.KeyPrefix},
	}
	s.heartbeatAt = s.nextHeartbeat()
	for _, c := range cfg.Conditions {
		h := &subject{course: course{condition: c.Name}, source: in.sources[c.Name], period: min(c.Common().Period.Duration, nearInterval*c.Common().MinInterval)}
		if h.source == nil {
			h.source = constant{fine()}
		}
		h.soon = h.period
		if followUp {
			h.soon = min(h.period, c.Common().FollowUp)
		}
		h.taintlet.add(0, 0)
		h.kubelet.add(0, 0)
		h.ask(0)
		s.subjects = append(s.subjects, h)
	}
	return s
}

// nextHeartbeat is when our conditions are refreshed again, without jitter.
func (s *simulation) nextHeartbeat() time.Duration {
	if s.cfg.Heartbeat.Duration == 0 {
		return forever
	}
	return s.now + s.cfg.Heartbeat.Duration
}

// nextEvent is when something happens next.
func (s *simulation) nextEvent() time.Duration {
	next := min(s.kubeletAt, s.heartbeatAt)
	for _, h := range s.subjects {
		next = min(next, h.holds, h.sampleAt)
	}
	return next
}

// happen does what is due now: first the host changes, then everybody samples.
func (s *simulation) happen() {
	for _, h := range s.subjects {
		if h.holds <= s.now {
			h.ask(s.now)
		}
	}
	if s.kubeletAt <= s.now {
		s.kubeletAt += kubeletPeriod
		s.kubeletLooks()
	}
	for _, h := range s.subjects {
		if h.sampleAt <= s.now {
			s.sample(h)
		}
	}
	if s.heartbeatAt <= s.now {
		s.heartbeatAt = s.nextHeartbeat()
		s.step(decide.Inputs{Refresh: true})
	}
}

func (s *simulation) kubeletLooks() {
	for _, h := range s.subjects {
		before := h.held()
		h.kubeletRule = h.kubeletRule.next(h.sample, s.now)
		h.kubelet.add(s.now, count(h.kubeletRule.tainted))
		if h.held() != before {
			h.ask(s.now)
		}
	}
}

func count(tainted bool) int {
	if tainted {
		return 1
	}
	return 0
}

// sample is one sample of the agent's probe.
func (s *simulation) sample(h *subject) {
	seen := h.sample
	s.observation[0] = probes.Observation{
		Condition: h.condition, Level: seen.level, Certain: seen.certain, Hysteresis: seen.hysteresis,
		Reason: "Simulated", Message: "simulated",
	}
	s.step(decide.Inputs{Observations: s.observation[:]})
	h.sampleAt = s.now + h.period
	if seen.bad() && s.state.Level(h.condition) == probes.OK {
		h.sampleAt = s.now + h.soon
	}
}

// step asks the decider and writes what it wants written.
func (s *simulation) step(in decide.Inputs) {
	in.Node, in.Facts = s.node, s.facts
	var d decide.Decision
	s.state, d = decide.Step(s.policy, s.state, in, s.boot.At.Add(s.now))
	if d.Desired == nil {
		return
	}
	if _, differs := d.Desired.Differs(s.node.Node); differs {
		if taints.Equal(d.Desired.ApplyTo(s.node.Node).Taints, s.node.Taints) {
			s.writes.Told++
		} else {
			s.writes.Node++
		}
	}
	if len(d.Desired.Conditions) > 0 {
		s.writes.Status++
	}
	s.node = decide.Read(d.Desired.ApplyTo(s.node.Node))
	s.compare()
	s.step(decide.Inputs{Written: true})
}

// compare notes which taints the Node has after a write.
func (s *simulation) compare() {
	placed := s.state.DesiredTaints()
	for _, h := range s.subjects {
		before, n := h.held(), 0
		for _, p := range placed {
			if p.Condition == h.condition && s.node.Has(p.Pair) {
				n++
			}
		}
		h.taintlet.add(s.now, n)
		if h.held() != before {
			h.ask(s.now)
		}
	}
}
