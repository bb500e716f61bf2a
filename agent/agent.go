// Package agent joins the probes, the decider and the Node: it runs the loop
// that takes observations and versions of the Node in and hands changes out.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/network"
	"github.com/taintlet/taintlet/probes/pid"
	"github.com/taintlet/taintlet/taints"
)

// NodeClient is where the agent's Node lives: behind an API server
// (*taints.Client) or, with --dry-run=client, in memory (*Offline).
type NodeClient interface {
	// Watch sends every version of the Node, nil while there is none, until
	// the context ends.
	Watch(ctx context.Context, nodes chan<- *corev1.Node) error
	// Apply makes the Node carry the change and returns the newest version
	// seen, also with an error.
	Apply(ctx context.Context, base *corev1.Node, change taints.Change) (*corev1.Node, error)
	// KeepPolicyPresent reports whether the admission policy that keeps our
	// pairs is in force.
	KeepPolicyPresent(ctx context.Context) (bool, error)
	// Announce writes a warning Event about the Node before it returns.
	Announce(ctx context.Context, node *corev1.Node, reason, message string) error
}

// Agent is one agent for one Node. All fields are needed.
type Agent struct {
	Config *config.Config
	// ConfigFile is read again all the time; empty: never.
	ConfigFile string
	// NewProbe makes the probe of a condition, also anew when the configuration
	// changes; HostProbes makes those of a host.
	NewProbe func(*config.Config, probes.Condition) probes.Probe
	Client   NodeClient
	// Slots bound evictions across the fleet.
	Slots SlotClient
	// Recorder takes the Events about the Node.
	Recorder record.EventRecorder
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

// HostProbes returns what makes the probes of a host.
func HostProbes(host probes.Host) func(*config.Config, probes.Condition) probes.Probe {
	return func(cfg *config.Config, condition probes.Condition) probes.Probe {
		switch condition {
		case probes.MemoryPressure:
			return memory.New(host, cfg.Memory.Thresholds())
		case probes.DiskPressure:
			return disk.New(host, cfg.Disk.Paths, cfg.Disk.Thresholds(), cfg.Disk.Write())
		case probes.PIDPressure:
			return pid.New(host, cfg.PID.Thresholds())
		default:
			return network.New(host)
		}
	}
}

// Run runs the agent until the context ends, and serves HTTP on the listener
// (nil: none) meanwhile. Taints stay on the Node when it returns. The error is
// that of the HTTP server; the end of the context is none.
func (a *Agent) Run(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()

	l := newLoop(a, &group)
	for _, condition := range probes.Conditions() {
		l.startProbe(ctx, condition)
	}
	group.Go(func() { l.watch(ctx) })
	if a.ConfigFile != "" {
		group.Go(func() { (&reloader{path: a.ConfigFile, current: a.Config.Hash}).run(ctx, l.reloads) })
	}
	keeper := &slotKeeper{client: a.Slots, log: a.Log, metrics: l.metrics, now: a.Now}
	group.Go(func() { keeper.run(ctx, l.wishes, l.slots) })
	w := &writer{
		client: a.Client, log: a.Log, metrics: l.metrics,
		mayEvictUntil: keeper.mayEvictUntil, now: a.Now, announced: map[announcement]bool{},
	}
	group.Go(func() { w.run(ctx, l.jobs, l.results) })
	group.Go(func() { l.lookForPolicy(ctx) })

	server := &http.Server{Handler: l.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	serverErr := make(chan error, 1)
	if listener != nil {
		group.Go(func() { serverErr <- server.Serve(listener) })
		defer server.Close() //nolint:errcheck // nothing is left to be told
	}
	return l.run(ctx, serverErr)
}

// loop is the one goroutine that decides. It never waits for the API server.
type loop struct {
	*Agent
	metrics *metrics
	health  *health
	// cfg is the configuration in force.
	cfg     *config.Config
	group   *sync.WaitGroup // of all goroutines
	runners map[probes.Condition]*runner
	// start and tempo of the probes: those of one agent look at the same moments.
	start time.Time
	tempo float64

	observations chan look
	reloads      chan reload
	nodes        chan *corev1.Node
	jobs         chan job
	results      chan result
	askPolicy    chan struct{}
	policy       chan bool
	wishes       chan slotWish
	slots        chan decide.Slot

	state       decide.State
	node        *decide.Node
	facts       taints.Facts
	policyKnown bool
	slot        decide.Slot
	wish        slotWish // the newest one that the keeper was given
	// announcements of evictions that the writer makes before the taints.
	announcements []announcement
	sequence      uint64         // of the newest job
	handedOut     *taints.Change // its change; nil: none that may still land
	refused       string         // what the API server said to the newest write, if it refused it
}

func newLoop(a *Agent, group *sync.WaitGroup) *loop {
	l := &loop{
		Agent:        a,
		cfg:          a.Config,
		group:        group,
		runners:      make(map[probes.Condition]*runner),
		start:        time.Now(),
		tempo:        tempo(),
		observations: make(chan look),
		reloads:      make(chan reload),
		nodes:        make(chan *corev1.Node),
		jobs:         make(chan job, 1),
		results:      make(chan result),
		askPolicy:    make(chan struct{}, 1),
		policy:       make(chan bool),
		wishes:       make(chan slotWish, 1),
		slots:        make(chan decide.Slot),
		state:        decide.New(a.Boot, a.Instance, a.Now()),
		facts:        taints.Facts{LifecycleController: a.LifecycleController, StandInPrefix: a.Config.StandInPrefix},
	}
	l.metrics = newMetrics(a.Version)
	l.metrics.configured(a.Config.Hash)
	l.health = newHealth(a.Config, a.Now())
	l.askPolicy <- struct{}{}
	return l
}

func (l *loop) run(ctx context.Context, serverErr <-chan error) error {
	heartbeat := newHeartbeat(l.cfg.Heartbeat.Duration)
	defer func() { heartbeat.Stop() }()
	for {
		var in decide.Inputs
		select {
		case <-ctx.Done():
			l.Log.Info("stopping; taints stay on the node")
			return nil
		case err := <-serverErr:
			return fmt.Errorf("http server: %w", err)
		case o := <-l.observations:
			if o.by != l.runners[o.Condition] {
				continue // by a probe of the configuration before
			}
			l.health.round(o.Condition, l.Now())
			l.metrics.observe(o.Observation)
			in.Observations = []probes.Observation{o.Observation}
		case node := <-l.nodes:
			l.meet(node)
		case present := <-l.policy:
			l.learnPolicy(present)
		case l.slot = <-l.slots:
		case r := <-l.results:
			in.Written = l.written(r)
		case <-heartbeat.C:
			heartbeat.Reset(jittered(l.cfg.Heartbeat.Duration))
			in.Refresh = true
			l.handedOut = nil // a heartbeat may say the same again
			l.lookForPolicyAgain()
		case r := <-l.reloads:
			if r.err != nil {
				l.refuse(r.err)
				continue
			}
			l.reconfigure(ctx, r.cfg)
			heartbeat.Stop()
			heartbeat = newHeartbeat(l.cfg.Heartbeat.Duration)
		}
		l.step(in)
	}
}

// step asks the decider and passes its answer on.
func (l *loop) step(in decide.Inputs) {
	in.Facts, in.Slot = l.facts, l.slot
	if l.policyKnown { // before that, a wrong via would be written
		in.Node = l.node
	}
	var d decide.Decision
	before := l.state
	l.state, d = decide.Step(l.cfg, l.state, in, l.Now())
	for _, notice := range d.Notices {
		l.tell(notice, before.Placed())
		l.heed(notice)
	}
	l.wishSlot(slotWish{wish: d.Slot, cfg: l.cfg})
	if d.Change != nil && l.policyKnown && (l.handedOut == nil || !reflect.DeepEqual(*l.handedOut, *d.Change)) {
		l.handOut(*d.Change)
	}
	for condition, r := range l.runners {
		r.decided.Store(int32(l.state.Level(condition)))
	}
	l.metrics.state(&l.state)
	l.health.setReady(l.whyNotReady())
}

// wishSlot gives the keeper the newest wish, if there is a new one.
func (l *loop) wishSlot(wish slotWish) {
	if wish.wish == decide.SlotAsItIs || wish == l.wish {
		return
	}
	l.wish = wish
	select {
	case unread := <-l.wishes:
		wish.wasUsed = unread.wasUsed || unread.wish == decide.SlotInUse
	default:
	}
	l.wishes <- wish
}

// heed does what a notice asks of the loop.
func (l *loop) heed(n decide.Notice) {
	switch {
	case n.Kind == decide.TaintLost && n.Via == taints.Kept:
		// The policy may be gone. Until that is known nothing is written, so
		// that at most one write is lost to the controller.
		l.policyKnown = false
		l.lookForPolicyAgain()
	case n.Kind == decide.Overtaken:
		select {
		case <-l.jobs: // what was to be written is the other agent's to write
		default:
		}
	}
}

// whyNotReady is empty when the Node is looked after.
func (l *loop) whyNotReady() string {
	switch {
	case l.node == nil:
		return "node not seen yet, or it does not exist"
	case !l.policyKnown:
		return "it is not known yet whether the admission policy " + taints.KeepPolicyName + " is there"
	}
	return cmp.Or(l.state.WhyNotWriting(), l.refused)
}

// meet takes in a version of the Node unless a newer one is known already: a
// write's answer may overtake the watch.
func (l *loop) meet(node *corev1.Node) {
	if node == nil {
		l.Log.Warn("node not found; nothing is written until it exists. Is --node-name right?")
		l.node = nil
		return
	}
	if l.node == nil || node.UID != l.node.UID || newer(node, l.node.Node) {
		l.node = decide.Read(node)
	}
}

func (l *loop) learnPolicy(present bool) {
	if !l.policyKnown || present != l.facts.KeepPolicy {
		l.Log.Info("admission policy looked up", "name", taints.KeepPolicyName, "present", present)
	}
	l.policyKnown, l.facts.KeepPolicy = true, present
}

// handOut gives the writer the newest change; one that it has not begun with
// is replaced.
func (l *loop) handOut(change taints.Change) {
	select {
	case <-l.jobs:
	default:
	}
	l.sequence++
	l.handedOut = &change
	l.jobs <- job{l.sequence, l.node.Node, change, slices.Clone(l.announcements)}
}

// written takes in the writer's answer and reports whether the newest change
// is on the Node.
func (l *loop) written(r result) bool {
	if r.node != nil && l.node != nil {
		l.meet(r.node)
	}
	switch {
	case r.err == nil:
		l.refused = ""
	case apierrors.IsForbidden(r.err), apierrors.IsInvalid(r.err):
		l.refused = r.err.Error() // what it would write is not on the Node, and trying again does not help
	}
	if r.sequence != l.sequence {
		return false
	}
	if r.err == nil && !l.evictionIsDue(r.node) {
		l.announcements = nil
	}
	if errors.Is(r.err, taints.ErrOvertaken) {
		l.handedOut = nil // decided anew on the newer Node
	}
	return r.err == nil
}

// evictionIsDue reports whether an eviction was decided whose taint is not on
// the Node: its slot was not certain when the rest was written.
func (l *loop) evictionIsDue(node *corev1.Node) bool {
	return slices.ContainsFunc(l.cfg.Rules, func(r config.Rule) bool {
		return r.Level == probes.Critical && l.state.Level(r.Condition) == probes.Critical && !taints.Has(node.Spec.Taints, r.Taint.Pair())
	})
}

// watch passes the Node on until the context ends.
func (l *loop) watch(ctx context.Context) {
	if err := l.Client.Watch(ctx, l.nodes); err != nil && ctx.Err() == nil {
		l.Log.Error("the watch of the node ended", "error", err)
	}
}

// lookForPolicyAgain does not wait for the answer.
func (l *loop) lookForPolicyAgain() {
	select {
	case l.askPolicy <- struct{}{}:
	default: // asked already
	}
}

// lookForPolicy looks whether the admission policy is there: at the start, with
// each heartbeat, so that one that was installed meanwhile is made use of, and
// when a kept pair was lost.
func (l *loop) lookForPolicy(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.askPolicy:
		}
		present, ok := l.policyPresent(ctx)
		if !ok {
			return
		}
		select {
		case <-ctx.Done():
			return
		case l.policy <- present:
		}
	}
}

// policyPresent asks until there is an answer. Being forbidden to ask is one:
// without knowing, the stand-in is the pair that stays.
func (l *loop) policyPresent(ctx context.Context) (present, ok bool) {
	backoff := newBackoff()
	for {
		present, err := l.keepPolicyPresent(ctx)
		if err == nil {
			return present, true
		}
		if apierrors.IsForbidden(err) {
			l.Log.Warn("cannot look for the admission policy; assuming that it is absent", "error", err)
			return false, true
		}
		l.Log.Warn("cannot look for the admission policy; trying again", "error", err)
		if !sleep(ctx, backoff.Step()) {
			return false, false
		}
	}
}

func (l *loop) keepPolicyPresent(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return l.Client.KeepPolicyPresent(ctx)
}

func newHeartbeat(period time.Duration) *time.Timer {
	if period == 0 {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return timer
	}
	return time.NewTimer(jittered(period))
}

// tempo is a factor of 0.9 to 1.1 for periods, so that the agents of a cluster
// that started together do not stay together.
func tempo() float64 { return 0.9 + 0.2*rand.Float64() } //nolint:gosec // not a secret

func jittered(period time.Duration) time.Duration {
	return time.Duration(float64(period) * tempo())
}
