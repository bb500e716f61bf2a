package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/metrics"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/reported"
	"github.com/taintlet/taintlet/agent/sampling"
	"github.com/taintlet/taintlet/agent/serve"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/pace"
)

// loop is the one goroutine that decides. It never waits for the API server.
// All its methods run on that goroutine.
type loop struct {
	*Agent
	metrics *metrics.Metrics
	health  *serve.Health
	// file is the configuration of the file, cfg that which is in force: the file's for the
	// labels of the Node. deciderPolicy is what cfg asks of the decider.
	file, cfg     *config.Config
	deciderPolicy *decide.Policy

	probes *sampling.Runners
	watch  *node.Watch
	outbox *node.Outbox
	// answersSince is when the API server most recently answered again after a silence.
	answersSince time.Time
	policy       *node.PolicyLookup
	slots        *slots.Keeper
	fleet        *fleet.Fleet
	// reported has the conditions of the Node that others report.
	reported *reported.Board
	reloads  chan reload

	state  decide.State
	newest *decide.Node // nil: not seen yet, or there is none
	// hasSeenNode: some version of it was seen.
	hasSeenNode bool
	seenAt      time.Time // when that version was
	facts       taints.Facts
	// answer is the newest one about the admission policy. pending are notices that wait
	// for the next one, since they name the taint.
	answer    policyAnswer
	pending   []decide.Notice
	slot      decide.Slot
	heartbeat *time.Timer
	// warned: a good sample that warns was reported.
	warned      map[probes.Condition]bool
	levelEvents *levelEvents
}

func newLoop(a *Agent, start sampling.StartWorker) *loop {
	l := &loop{
		Agent:   a,
		metrics: metrics.New(a.Version),
		health:  serve.NewHealth(a.Config, a.Now()),
		file:    a.Config,
		cfg:     a.Config,

		deciderPolicy: a.Config.Policy(),

		warned:      map[probes.Condition]bool{},
		levelEvents: &levelEvents{last: map[probes.Condition]time.Time{}, waiting: map[probes.Condition]levelEvent{}},
		watch:       node.NewWatch(a.Client),
		fleet:       cmp.Or(a.Fleet, fleet.Alone()),
		reloads:     make(chan reload),
		state:       decide.New(a.Boot, a.Instance),
		facts:       taints.Facts{StandInPrefix: a.Config.KeyPrefix},
	}
	l.slots = slots.NewKeeper(a.Slots, a.Log, a.Now)
	l.policy = node.NewPolicyLookup(a.Client, l.fleet.Crowd, a.Log)
	l.outbox = node.NewOutbox(a.Client, l.slots.MayEvictUntil, a.Now, l.fleet.Crowd, a.Log)
	l.reported = reported.NewBoard(a.Now)
	l.probes = sampling.NewRunners(l.newProbe, start, l.metrics, a.Log)
	l.metrics.Configured(a.Config)
	return l
}

func (l *loop) run(ctx context.Context) error {
	for _, c := range l.cfg.Conditions {
		l.startProbe(ctx, c)
	}
	l.policy.Ask(true)
	l.heartbeat = time.NewTimer(l.untilHeartbeat())
	defer l.heartbeat.Stop()
	for {
		var in decide.Inputs
		select {
		case <-ctx.Done():
			l.Log.Info("stopping; taints stay on the node")
			return nil
		case s := <-l.probes.Samples:
			if !l.probes.IsCurrent(s) {
				continue // by a probe of the configuration before
			}
			l.health.Sampled(s.Condition, l.Now())
			l.tellWarning(s.Observation)
			in.Observations = []probes.Observation{s.Observation}
		case version := <-l.watch.Versions:
			l.outbox.SignOfLife()
			l.observeNode(version)
		case answer := <-l.policy.Answers:
			l.observePolicy(answer)
		case l.slot = <-l.slots.Answers:
		case r := <-l.outbox.Results:
			in.Written, in.Answer = l.observeResult(r), r.Landed
		case <-l.heartbeat.C:
			l.heartbeat.Reset(l.untilHeartbeat())
			in.Refresh = true
			l.outbox.AllowRepeat()
			l.policy.Ask(l.state.IsKeepFailing())
		case r := <-l.reloads:
			if r.err != nil {
				l.refuse(r.err)
				continue
			}
			l.metrics.Refused(false)
			l.file = r.cfg
		}
		l.follow(ctx)
		l.evaluate(in)
	}
}

// evaluate asks the decider and passes its answer on.
func (l *loop) evaluate(in decide.Inputs) {
	now := l.Now()
	in.Facts, in.Slot, in.Peers, in.AnswersSince = l.facts, l.slot, l.fleet.Peers(), l.answersSince
	if l.answer.isKnown && !l.answer.isAwaited { // before that, a wrong via would be written
		in.Node, in.NodeAt = l.newest, l.seenAt
	}
	before := l.state
	next, d := decide.Step(l.deciderPolicy, before, in, now)
	if l.answer.isTooOld(before.DesiredTaints(), next.DesiredTaints(), d.Notices, now) {
		// Without the Node the evidence is taken in and nothing is decided to write.
		l.answer.isAwaited = true
		l.policy.Ask(l.answer.isPresent)
		in.Node = nil
		next, d = decide.Step(l.deciderPolicy, before, in, now)
	}
	l.state = next
	l.pending = append(l.pending, d.Notices...)
	if !l.answer.isAwaited {
		for _, notice := range l.pending {
			l.tell(notice, before.DesiredTaints())
			if l.state.WhyNotWriting() != "" {
				l.outbox.Withdraw() // it is the newer release's to write
			}
		}
		l.pending = nil
	}
	l.levelEvents.pass(now, l.event)
	l.slots.Request(d.Slot, l.cfg)
	if d.Desired != nil && l.answer.isKnown {
		l.outbox.Put(l.newest.Node, *d.Desired)
	}
	if !d.Adopted.IsZero() {
		l.heartbeat.Reset(l.untilHeartbeat() - now.Sub(d.Adopted))
	}
	l.probes.Decided(&l.state)
	l.tellFleet()
	l.metrics.Decided(l.deciderPolicy, &l.state, l.fleet.Status(), now)
	l.health.SetReady(l.whyNotReady())
}

// tellFleet passes on the levels that peers get.
func (l *loop) tellFleet() {
	levels := make(map[probes.Condition]probes.Level, len(l.cfg.Conditions))
	for i := range l.cfg.Conditions {
		name := l.cfg.Conditions[i].Name
		levels[name] = l.state.Shared(name)
	}
	l.fleet.SetDecided(levels, l.state.Maintenance() != "", l.deciderPolicy.Maintenance)
}

// whyNotReady is empty when this agent is active for the Node and may write it.
func (l *loop) whyNotReady() string {
	switch {
	case l.newest == nil:
		return "node not seen yet, or it does not exist"
	case !l.answer.isKnown:
		return "it is not known yet whether the admission policy " + taints.KeepPolicyName + " is there"
	}
	return cmp.Or(l.state.WhyNotWriting(), l.outbox.Refused())
}

// observePolicy takes in what is known of the admission policy. A new policy is not used before API
// servers have loaded it: otherwise the first loss would count as its failure.
func (l *loop) observePolicy(answer node.PolicyAnswer) {
	if l.answer.brings(answer, l.facts.KeepVersion) && l.answer.loading != answer {
		l.answer.loading = answer
		time.AfterFunc(loadedWithin, func() { l.policy.Ask(answer.Version != "") })
		return
	}
	if !l.answer.isKnown || answer.IsPresent != l.answer.isPresent {
		l.Log.Info("admission policy looked up", "name", taints.KeepPolicyName, "present", answer.IsPresent)
	}
	l.answer = policyAnswer{isKnown: true, isPresent: answer.IsPresent, at: l.Now()}
	l.facts.KeepPolicy = answer.IsPresent
	if answer.Version != "" {
		l.facts.KeepVersion = answer.Version
	}
}

// observeNode takes in a version of the Node unless a newer one is known already: a
// write's answer may overtake the watch.
func (l *loop) observeNode(version *taints.Node) {
	if version == nil {
		l.Log.Warn("node not found; nothing is written until it exists. Check --node-name")
		l.newest = nil
		l.reported.Put(nil)
		return
	}
	if l.newest == nil || version.UID != l.newest.UID || node.IsNewer(version, l.newest.Node) {
		l.fleet.SetNode(version, l.newest == nil)
		l.setNode(version)
	}
}

// setNode takes a version of the Node for the newest.
func (l *loop) setNode(version *taints.Node) {
	l.newest, l.seenAt = decide.Read(version), l.Now()
	l.reported.Put(version)
}

// observeResult takes in the writer's answer and reports whether what is desired now is
// on the Node.
func (l *loop) observeResult(r node.Result) bool {
	switch {
	case r.IsRestored:
		l.Log.Warn("the node is older than before: etcd was restored. Watching it again", "version", r.Node.ResourceVersion)
		l.setNode(r.Node)
		l.watch.Restart()
	case r.Node != nil && l.newest != nil:
		l.observeNode(r.Node)
	}
	if errors.Is(r.Err, node.ErrAnswersAgain) { // which was no write
		l.answersSince = l.Now()
	} else {
		l.metrics.Wrote(r.Err)
	}
	return l.outbox.Observe(r, l.evictionPending)
}

// evictionPending reports whether an eviction was decided whose taint is not on
// the Node: its slot was not certain when everything else was written.
func (l *loop) evictionPending(written *taints.Node) bool {
	for _, r := range l.cfg.Rules {
		if r.Level == probes.Critical && l.state.Level(r.Condition) == probes.Critical && !written.Has(r.Taint.Pair()) {
			return true
		}
	}
	return false
}

// refuse keeps the configuration that is in force and reports that.
func (l *loop) refuse(err error) {
	l.metrics.Refused(true)
	// Not as an error: two files are two lines, however soon they follow each other.
	l.Log.Error("configuration refused; the earlier one stays in force", "inForce", l.cfg.Hash, "reason", err.Error())
	l.event(corev1.EventTypeWarning, "ConfigurationRefused", "configuration "+l.cfg.Hash+" stays in force: "+err.Error())
}

// follow puts into force what the file has for the labels of the Node, and reports that. It reports
// no override at the start: nothing is decided before the Node is seen.
func (l *loop) follow(ctx context.Context) {
	next, before := l.file, l.cfg
	isStart := l.newest != nil && !l.hasSeenNode
	if l.newest != nil {
		next, l.hasSeenNode = l.file.For(l.newest.Labels), true
	} else if next.Hash == before.Hash {
		return
	}
	if next == before {
		return
	}
	changes := l.reconfigure(ctx, next)
	switch {
	case named(next) == named(before): // only after a refusal; who read of that looks for its end
		l.event(corev1.EventTypeNormal, "ConfigurationReloaded", "the file has configuration "+named(next)+" again, which is still in force")
	case next.Hash != before.Hash:
		l.event(corev1.EventTypeNormal, "ConfigurationReloaded", "configuration "+named(next)+" is in force; the earlier one was "+named(before)+": "+changes)
	case !isStart:
		l.event(corev1.EventTypeNormal, "OverrideChanged", fmt.Sprintf("the labels of the node match %s, before they matched %s: %s",
			cmp.Or(next.Override, "no override"), cmp.Or(before.Override, "no override"), changes))
	}
}

// named is what Events call a configuration.
func named(cfg *config.Config) string {
	if cfg.Override == "" {
		return cfg.Hash
	}
	return cfg.Hash + " with " + cfg.Override
}

// reconfigure puts a configuration into force and returns what that changes. Only probes with
// changed settings are replaced.
func (l *loop) reconfigure(ctx context.Context, cfg *config.Config) (changes string) {
	before := l.cfg
	l.cfg, l.deciderPolicy = cfg, cfg.Policy()
	if cfg.Heartbeat != before.Heartbeat { // or a file that keeps changing would put it off
		l.heartbeat.Reset(l.untilHeartbeat())
	}
	l.facts.StandInPrefix = cfg.KeyPrefix
	for _, next := range cfg.Conditions {
		if old, known := before.Condition(next.Name); !known || !config.SameProbe(old, next) {
			l.state = l.state.Forget(next.Name)
			l.startProbe(ctx, next)
		}
	}
	for _, old := range before.Conditions {
		if _, found := cfg.Condition(old.Name); !found {
			l.probes.Stop(old.Name)
			l.health.Forget(old.Name)
			l.metrics.Forget(old.Name)
		}
	}
	l.metrics.Configured(cfg)
	changes = config.Changes(before, cfg)
	l.Log.Info("configuration in force", "hash", cfg.Hash, "before", before.Hash, "override", cfg.Override, "changes", changes)
	return changes
}

// newProbe makes the probe of a condition of the host, or of a condition that another program
// reports.
func (l *loop) newProbe(c config.Condition) probes.Probe {
	if r, isReported := c.Section.(*config.Reported); isReported {
		return l.reported.Probe(reported.Options{Type: r.Type, BadStatus: r.BadStatus, StaleAfter: r.StaleAfter.Duration})
	}
	p := l.NewProbe(c)
	if network, isNetwork := p.(fleet.Joiner); isNetwork {
		network.Join(l.fleet)
	}
	return p
}

// startProbe starts the probe of a condition, in place of that which runs.
func (l *loop) startProbe(ctx context.Context, c config.Condition) {
	l.health.Expect(c, l.Now())
	l.probes.Start(ctx, c, l.state.Level(c.Name))
}

// never is when there is a heartbeat where a file asks for none.
const never = 100 * 365 * 24 * time.Hour

// untilHeartbeat is the time from one heartbeat to the next.
func (l *loop) untilHeartbeat() time.Duration {
	return pace.Jittered(cmp.Or(l.cfg.Heartbeat.Duration, never))
}
