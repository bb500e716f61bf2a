// Package agent joins the probes, the decider and the Node: it runs the loop
// that takes observations and versions of the Node in and hands changes out.
package agent

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// NodeClient is where the agent's Node lives: behind an API server
// (*apiserver.Client), in memory with --dry-run=client (*Offline), or half of each with
// --dry-run=server (*Rehearsal).
type NodeClient interface {
	// Watch sends every version of the Node, nil while there is none, until
	// the context ends.
	Watch(ctx context.Context, nodes chan<- *taints.Node) error
	// Apply makes the Node carry the change and returns the newest version
	// seen, also with an error.
	Apply(ctx context.Context, base *taints.Node, change taints.Change) (*taints.Node, error)
	// KeepPolicyPresent reports whether the admission policy that keeps our
	// pairs is in force.
	KeepPolicyPresent(ctx context.Context) (bool, error)
	// Announce writes a warning Event about the Node before it returns.
	Announce(ctx context.Context, node *taints.Node, reason, message string) error
}

// Recorder takes Events and does not wait for the API server. It is the part of
// client-go's record.EventRecorder that is used.
type Recorder interface {
	Event(node *taints.Node, kind, reason, message string)
}

// Agent is one agent for one Node. All fields but Reload and Fleet are needed.
type Agent struct {
	Config *config.Config
	// Reload reads the configuration again; nil: it never changes.
	Reload func() (*config.Config, error)
	// NewProbe makes the probe of a condition, also anew when its section
	// changes. Package hostprobes makes those of a host.
	NewProbe func(config.Condition) probes.Probe
	Client   NodeClient
	// Slots bound evictions across the fleet.
	Slots slots.Client
	// Fleet is the agents on other Nodes; nil: there are none.
	Fleet *fleet.Fleet
	// Recorder takes the Events about the Node.
	Recorder Recorder
	Log      *slog.Logger
	// Instance is the name of this process; no other may have it.
	Instance string
	// Boot is the host's boot, Now the clock that it is measured on.
	Boot decide.Boot
	Now  func() time.Time
	// LifecycleController: the cluster has a node-lifecycle-controller.
	LifecycleController bool
	// Version is shown in metrics.
	Version string
}

// Run runs the agent until the context ends, and serves HTTP on the listener
// (nil: none). Taints stay on the Node when it returns. The end of the context
// is no error; a worker that ended before it is one.
func (a *Agent) Run(ctx context.Context, listener net.Listener) error {
	workers, ctx := newWorkers(ctx)
	l := newLoop(a, workers)
	writer := &writer{
		client: a.Client, log: a.Log, metrics: l.metrics, jobs: l.outbox.jobs, alive: l.outbox.alive, results: l.results,
		mayEvictUntil: l.slots.MayEvictUntil, now: a.Now, announced: map[announcement]bool{},
	}

	workers.start(ctx, "watch of the node", l.watch)
	workers.start(ctx, "lookup of the admission policy", l.policy.run)
	workers.start(ctx, "eviction slot", l.slots.Run)
	workers.start(ctx, "lookup of the fleet", l.fleet.Run)
	workers.start(ctx, "writer", writer.run)
	if a.Reload != nil {
		workers.start(ctx, "reload of the configuration", (&reloader{
			load: a.Reload, current: a.Config.Hash, news: l.reloads, slices: l.fleet.Slices,
		}).run)
	}
	if listener != nil {
		workers.start(ctx, "http server", server{listener, l.handler(), a.Log, l.fleet.IsAgent}.run)
	}
	workers.start(ctx, "loop", l.run)
	return workers.wait()
}

// loop is the one goroutine that decides. It never waits for the API server.
// All its methods run on that goroutine, but for handler.
type loop struct {
	*Agent
	metrics *metrics
	health  *health
	// cfg is the configuration in force, deciderPolicy what it asks of the decider.
	cfg           *config.Config
	deciderPolicy *decide.Policy

	probes *runners
	outbox *outbox
	policy *policyLookup
	slots  *slots.Keeper
	fleet  *fleet.Fleet
	nodes  chan *taints.Node
	// stopWatch ends the watch of the Node.
	stopWatch atomic.Pointer[context.CancelFunc]
	reloads   chan reload
	results   chan result // of the writer

	state decide.State
	node  *decide.Node
	facts taints.Facts
	// policyKnown: facts say whether the admission policy is there. policyAt is when
	// that was answered last. policyAwaited: a stand-in waits for a new answer.
	policyKnown   bool
	policyAt      time.Time
	policyAwaited bool
	untold        []decide.Notice // that wait with it, since they name the taint
	slot          decide.Slot
	heartbeat     *time.Timer
	// warned: people were told of a good sample that warns.
	warned      map[probes.Condition]bool
	levelEvents *levelEvents
}

func newLoop(a *Agent, workers workers) *loop {
	l := &loop{
		Agent:   a,
		metrics: newMetrics(a.Version),
		health:  newHealth(a.Config, a.Now()),
		cfg:     a.Config,
		outbox:  newOutbox(),

		deciderPolicy: a.Config.Policy(),

		warned:      map[probes.Condition]bool{},
		levelEvents: newLevelEvents(),
		policy:      newPolicyLookup(a.Client, a.Log),
		fleet:       cmp.Or(a.Fleet, fleet.Alone()),
		nodes:       make(chan *taints.Node),
		reloads:     make(chan reload),
		results:     make(chan result),
		state:       decide.New(a.Boot, a.Instance, a.Now()),
		facts:       taints.Facts{LifecycleController: a.LifecycleController, StandInPrefix: a.Config.StandInPrefix},
	}
	l.slots = slots.NewKeeper(a.Slots, a.Log, a.Now)
	l.probes = newRunners(a.NewProbe, l.fleet, workers, l.metrics, a.Log)
	l.metrics.configured(a.Config)
	return l
}

func (l *loop) run(ctx context.Context) error {
	for _, c := range l.cfg.Conditions {
		l.startProbe(ctx, c)
	}
	l.policy.ask()
	l.heartbeat = newHeartbeat(l.cfg.Heartbeat.Duration)
	defer func() { l.heartbeat.Stop() }()
	for {
		var in decide.Inputs
		select {
		case <-ctx.Done():
			l.Log.Info("stopping; taints stay on the node")
			return nil
		case s := <-l.probes.samples:
			if !l.probes.isCurrent(s) {
				continue // by a probe of the configuration before
			}
			if s.report != nil {
				l.fleet.Observe(s.report.Heard)
				l.fleet.SetAnswer(s.report.Own)
			}
			l.health.round(s.Condition, l.Now())
			l.metrics.samples.observe(s.Observation)
			l.metrics.reaction.follow(s.Observation, &l.state, l.cfg, l.Now())
			l.tellWarning(s.Observation)
			in.Observations = []probes.Observation{s.Observation}
		case node := <-l.nodes:
			l.outbox.signOfLife()
			l.meet(node)
		case present := <-l.policy.answers:
			l.learnPolicy(present)
		case l.slot = <-l.slots.Answers:
			l.metrics.slot(l.slot)
		case r := <-l.results:
			in.Written = l.settle(r)
		case <-l.heartbeat.C:
			l.heartbeat.Reset(pace.Jittered(l.cfg.Heartbeat.Duration))
			in.Refresh = true
			l.outbox.allowRepeat()
			l.policy.ask()
		case r := <-l.reloads:
			if r.err != nil {
				l.refuse(r.err)
				continue
			}
			before := l.cfg.Heartbeat
			l.reconfigure(ctx, r.cfg)
			if l.cfg.Heartbeat != before { // or a file that keeps changing would put it off
				l.heartbeat.Stop()
				l.heartbeat = newHeartbeat(l.cfg.Heartbeat.Duration)
			}
		}
		l.step(in)
	}
}

// step asks the decider and passes its answer on.
func (l *loop) step(in decide.Inputs) {
	in.Facts, in.Slot, in.Peers = l.facts, l.slot, l.fleet.Peers()
	if l.policyKnown && !l.policyAwaited { // before that, a wrong via would be written
		in.Node = l.node
	}
	before := l.state
	next, d := decide.Step(l.deciderPolicy, before, in, l.Now())
	if l.policyIsOld() && standsInAnew(before.DesiredTaints(), next.DesiredTaints()) {
		// The policy may have been installed since. Without the Node the evidence is
		// taken in and nothing is decided to write.
		l.policyAwaited = true
		l.policy.ask()
		in.Node = nil
		next, d = decide.Step(l.deciderPolicy, before, in, l.Now())
	}
	l.state = next
	l.untold = append(l.untold, d.Notices...)
	if !l.policyAwaited {
		for _, notice := range l.untold {
			l.tell(notice, before.DesiredTaints())
			l.heed(notice)
		}
		l.untold = nil
	}
	l.levelEvents.pass(l.Now(), l.event)
	l.slots.Request(d.Slot, l.cfg)
	if d.Change != nil && l.policyKnown {
		l.outbox.put(l.node.Node, *d.Change)
	}
	if !d.Adopted.IsZero() {
		l.heartbeat.Reset(pace.Jittered(l.cfg.Heartbeat.Duration) - l.Now().Sub(d.Adopted))
	}
	l.probes.decided(&l.state)
	l.metrics.state.show(l.deciderPolicy, &l.state, l.Now())
	l.tellFleet()
	l.health.setReady(l.whyNotReady())
}

// heed does what a notice asks of the loop.
func (l *loop) heed(n decide.Notice) {
	switch {
	case n.Kind == decide.TaintLost && n.Via == taints.Kept:
		// The policy may be gone. Until that is known nothing is written, so
		// that at most one write is lost to the controller.
		l.policyKnown = false
		l.policy.ask()
	case l.state.WhyNotWriting() != "":
		l.outbox.withdraw() // it is the other agent's, or the newer release's, to write
	}
}

// whyNotReady is empty when this agent is active for the Node and may write it.
func (l *loop) whyNotReady() string {
	switch {
	case l.node == nil:
		return "node not seen yet, or it does not exist"
	case !l.policyKnown:
		return "it is not known yet whether the admission policy " + taints.KeepPolicyName + " is there"
	}
	return cmp.Or(l.state.WhyNotWriting(), l.outbox.refused)
}

// meet takes in a version of the Node unless a newer one is known already: a
// write's answer may overtake the watch.
func (l *loop) meet(node *taints.Node) {
	if node == nil {
		l.Log.Warn("node not found; nothing is written until it exists. Is --node-name right?")
		l.node = nil
		return
	}
	if l.node == nil || node.UID != l.node.UID || newer(node, l.node.Node) {
		l.node = decide.Read(node)
	}
}

// endWatch ends the watch, so that another one begins.
func (l *loop) endWatch() {
	if stop := l.stopWatch.Load(); stop != nil {
		(*stop)()
	}
}

// watch watches the Node, and anew after endWatch: a watch tells nothing
// of a Node that is older than the one which it began with.
func (l *loop) watch(ctx context.Context) error {
	for {
		watching, stop := context.WithCancel(ctx)
		l.stopWatch.Store(&stop)
		err := l.Client.Watch(watching, l.nodes)
		isAnew := watching.Err() != nil && ctx.Err() == nil
		stop()
		if !isAnew {
			return err
		}
	}
}

func (l *loop) learnPolicy(present bool) {
	if !l.policyKnown || present != l.facts.KeepPolicy {
		l.Log.Info("admission policy looked up", "name", taints.KeepPolicyName, "present", present)
	}
	l.policyKnown, l.facts.KeepPolicy = true, present
	l.policyAt, l.policyAwaited = l.Now(), false
}

// settle takes in the writer's answer and reports whether the newest change is
// on the Node.
func (l *loop) settle(r result) bool {
	switch {
	case r.isRestored:
		l.Log.Warn("the node is older than before: etcd was restored. Watching it anew", "version", r.node.ResourceVersion)
		l.node = decide.Read(r.node)
		l.endWatch()
	case r.node != nil && l.node != nil:
		l.meet(r.node)
	}
	if r.err == nil {
		l.metrics.reaction.written(r.node, &l.state, l.Now())
	}
	return l.outbox.settle(r, l.evictionIsDue)
}

// evictionIsDue reports whether an eviction was decided whose taint is not on
// the Node: its slot was not certain when everything else was written.
func (l *loop) evictionIsDue(node *taints.Node) bool {
	for _, r := range l.cfg.Rules {
		if r.Level == probes.Critical && l.state.Level(r.Condition) == probes.Critical && !node.Has(r.Taint.Pair()) {
			return true
		}
	}
	return false
}

func newHeartbeat(period time.Duration) *time.Timer {
	if period == 0 {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return timer
	}
	return time.NewTimer(pace.Jittered(period))
}
