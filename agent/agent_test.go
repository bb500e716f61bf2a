package agent_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

// probe is a probe that sees what it is told to see.
type probe struct {
	condition probes.Condition
	wake      chan struct{}

	mu       sync.Mutex
	level    probes.Level
	headroom time.Duration
	samples  []time.Time
	hang     bool
	reason   string
	warns    bool
}

func (p *probe) Condition() probes.Condition { return p.condition }
func (p *probe) Wake() <-chan struct{}       { return p.wake }
func (p *probe) Run(context.Context)         {}

func (p *probe) Observe(ctx context.Context) probes.Observation {
	p.mu.Lock()
	hang, level, headroom, reason, warns := p.hang, p.level, p.headroom, cmp.Or(p.reason, "Seen"), p.warns
	p.samples = append(p.samples, time.Now())
	p.mu.Unlock()
	if hang {
		<-ctx.Done()
		return probes.Observation{Condition: p.condition, Level: probes.Unknown, Reason: "Hung", Message: "hung"}
	}
	return probes.Observation{Condition: p.condition, Level: level, Reason: reason, Message: level.String(), Headroom: headroom, Warns: warns}
}

func (p *probe) set(level probes.Level) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = level
}

// say gives the samples a reason.
func (p *probe) say(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reason, p.warns = reason, false
}

// warn gives the samples a reason of which people are told although they are good.
func (p *probe) warn(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reason, p.warns = reason, true
}

// since returns when the probe took samples after a time.
func (p *probe) since(t time.Time) []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.samples), func(sample time.Time) bool { return !sample.After(t) })
}

// client is a Node in memory that counts the writes and can refuse them.
type client struct {
	*node.Memory

	mu      sync.Mutex
	refuse  error
	hang    bool
	slow    time.Duration
	applied []time.Time
	node    *taints.Node
	desired []taints.Desired

	announced, evicted, announcedFirst bool
	reasons, messages                  []string
}

func (c *client) Announce(_ context.Context, _ *taints.Node, reason, message string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil {
		return c.refuse
	}
	c.announced, c.reasons, c.messages = true, append(c.reasons, reason), append(c.messages, message)
	return nil
}

// Ping is refused as a write is, and counts as one then.
func (c *client) Ping(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil {
		c.applied = append(c.applied, time.Now())
	}
	return c.refuse
}

func (c *client) Apply(ctx context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = append(c.applied, time.Now())
	for _, taint := range desired.Taints {
		if taint.Effect == taints.NoExecute && !c.evicted {
			c.evicted, c.announcedFirst = true, c.announced
		}
	}
	if c.hang {
		c.mu.Unlock()
		<-ctx.Done()
		c.mu.Lock()
		return base, ctx.Err()
	}
	if c.refuse != nil {
		return base, c.refuse
	}
	if slow := c.slow; slow > 0 {
		c.mu.Unlock()
		time.Sleep(slow)
		c.mu.Lock()
	}
	c.desired = append(c.desired, desired)
	if c.node != nil && node.IsNewer(c.node, base) { // each write has a version of its own
		base = base.Clone()
		base.ResourceVersion = c.node.ResourceVersion
	}
	written, err := c.Memory.Apply(ctx, base, desired)
	for i, condition := range written.Conditions {
		if condition.LastTransitionTime.IsZero() {
			written.Conditions[i].LastTransitionTime = time.Now()
		}
	}
	c.node = written
	return written, err
}

func (c *client) setRefuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = err
}

func (c *client) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.applied)
}

func (c *client) has(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node != nil && c.node.Has(taints.Pair{Key: key, Effect: taints.NoSchedule})
}

// run runs an agent in a bubble of synthetic time.
func run(t *testing.T, cfg *config.Config, test func(t *testing.T, byCondition map[probes.Condition]*probe, c *client)) {
	t.Helper()
	byCondition := map[probes.Condition]*probe{}
	newProbe := func(c config.Condition) probes.Probe { return byCondition[c.Name] }
	runAgent(t, &agent.Agent{Config: cfg, NewProbe: newProbe, Recorder: &agent.Told{}}, byCondition, test)
}

// runAgent fills in the probes and what the agent lacks.
func runAgent(t *testing.T, a *agent.Agent, byCondition map[probes.Condition]*probe, test func(t *testing.T, byCondition map[probes.Condition]*probe, c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { runInBubble(t, a, byCondition, test) })
}

// runInBubble is runAgent within a bubble of synctest.
func runInBubble(t *testing.T, a *agent.Agent, byCondition map[probes.Condition]*probe, test func(t *testing.T, byCondition map[probes.Condition]*probe, c *client)) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c := &client{Memory: node.NewMemory("host", log)}
	for _, condition := range config.Default().Names() {
		p := &probe{condition: condition, level: probes.OK, wake: make(chan struct{}, 1)}
		byCondition[condition] = p
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	switch other := a.Client.(type) {
	case *beside:
		other.client, other.versions = c, make(chan *taints.Node)
	case *restarted:
		other.client = c
	case *restored:
		other.client = c
	case *withPolicy:
		other.beside = &beside{c, make(chan *taints.Node)}
	default:
		a.Client = c
	}
	a.Instance = "test"
	if a.Log == nil {
		a.Log = log
	}
	if a.Slots == nil {
		a.Slots = slots.Rehearsed{Log: log}
	}
	a.Boot, a.Now = decide.Boot{ID: "boot", At: time.Now()}, time.Now
	go func() { done <- a.Run(ctx, nil) }()
	time.Sleep(10 * time.Second)
	test(t, byCondition, c)
	cancel()
	if err := <-done; err != nil { // every goroutine has ended, or synctest says so
		t.Error(err)
	}
}

// A healthy host is quiet: the first report of the conditions, then heartbeats.
func TestAHealthyNodeIsWrittenByHeartbeatOnly(t *testing.T) {
	run(t, config.Default(), func(t *testing.T, _ map[probes.Condition]*probe, c *client) {
		if got := c.count(); got != 1 {
			t.Errorf("%d writes at the start", got)
		}
		time.Sleep(2 * time.Hour)
		// Every 5 min ± 10 %: 22 to 26 in two hours.
		if got := c.count() - 1; got < 21 || got > 27 {
			t.Errorf("%d heartbeats in 2 h", got)
		}
	})
}

func TestHeartbeatZeroIsNever(t *testing.T) {
	cfg := config.Default()
	cfg.Heartbeat.Duration = 0
	run(t, cfg, func(t *testing.T, _ map[probes.Condition]*probe, c *client) {
		time.Sleep(24 * time.Hour)
		if got := c.count(); got != 1 {
			t.Errorf("%d writes", got)
		}
	})
}

// After a bad sample the probe is asked every 100 ms, so that two of three are
// seen in a fifth of a second, and every second once it is decided.
func TestABadSampleHurriesUntilDecided(t *testing.T) {
	cfg := config.Default()
	fixtures.Section[*config.Disk](cfg).Period.Duration = 10 * time.Second
	run(t, cfg, func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		disk := by[probes.DiskPressure]
		disk.set(probes.Degraded)
		time.Sleep(11*time.Second + 200*time.Millisecond) // a period, and one hurried sample
		if !c.has(corev1.TaintNodeDiskPressure) {
			t.Error("no taint after two bad samples")
		}
		begin := time.Now()
		time.Sleep(time.Minute)
		if got := len(disk.since(begin)); got < 50 || got > 70 {
			t.Errorf("%d samples in the minute after the decision", got)
		}
	})
}

// The nearer the threshold, the more often a probe is asked: twice in the time
// that is left, between four times a second and once in the period.
func TestSamplesFollowTheHeadroom(t *testing.T) {
	run(t, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, _ *client) {
		memory := by[probes.MemoryPressure]
		for _, c := range []struct {
			headroom    time.Duration
			least, most int // samples in a minute, at a tempo of 0.9 to 1.1
		}{
			{0, 13, 17},
			{time.Hour, 13, 17},
			{9 * time.Second, 13, 17},
			{5 * time.Second, 27, 34},
			{2300 * time.Millisecond, 54, 67},
			{1200 * time.Millisecond, 109, 134},
			{time.Nanosecond, 218, 267},
		} {
			memory.mu.Lock()
			memory.headroom = c.headroom
			memory.mu.Unlock()
			time.Sleep(10 * time.Second) // the next sample has it
			begin := time.Now()
			time.Sleep(time.Minute)
			if got := len(memory.since(begin)); got < c.least || got > c.most {
				t.Errorf("%d samples in a minute with a headroom of %s, want %d to %d", got, c.headroom, c.least, c.most)
			}
		}
	})
}

// However often the kernel wakes a probe: at most four rounds a second.
func TestWakesAreBounded(t *testing.T) {
	run(t, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, _ *client) {
		memory := by[probes.MemoryPressure]
		begin := time.Now()
		for range 10_000 {
			select {
			case memory.wake <- struct{}{}:
			default:
			}
			time.Sleep(time.Millisecond)
		}
		if got := len(memory.since(begin)); got < 30 || got > 41 {
			t.Errorf("%d samples in 10 s of constant wakes", got)
		}
	})
}

// A probe that hangs until its deadline delays no other.
func TestAHungProbeDelaysNoOther(t *testing.T) {
	cfg := config.Default()
	fixtures.Section[*config.Memory](cfg).Period.Duration = time.Second
	run(t, cfg, func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		by[probes.DiskPressure].mu.Lock()
		by[probes.DiskPressure].hang = true
		by[probes.DiskPressure].mu.Unlock()
		time.Sleep(12 * time.Second)
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(2 * time.Second)
		if !c.has(corev1.TaintNodeMemoryPressure) {
			t.Error("memory is not tainted within 2 s beside a hung disk")
		}
		if c.has(corev1.TaintNodeDiskPressure) {
			t.Error("a hung probe tainted")
		}
	})
}

// An API server that refuses for an hour is asked with growing pauses, and
// gets the newest state when it answers again.
func TestRefusedWritesBackOff(t *testing.T) {
	run(t, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		for name, refusal := range map[string]struct {
			err         error
			least, most int // tries in an hour
		}{
			"it answers that it cannot": {apierrors.NewServiceUnavailable("overloaded"), 270, 500},
			"it refuses":                {apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "host", errors.New("policy")), 40, 80},
			"it does not answer":        {errors.New("connection refused"), 1100, 2000},
		} {
			by[probes.MemoryPressure].set(probes.OK)
			c.setRefuse(nil)
			time.Sleep(3 * time.Hour)
			c.setRefuse(refusal.err)
			before := c.count()
			by[probes.MemoryPressure].set(probes.Degraded)
			time.Sleep(time.Hour)
			if got := c.count() - before; got < refusal.least || got > refusal.most {
				t.Errorf("%s: %d tries in an hour", name, got)
			}
		}
		by[probes.MemoryPressure].set(probes.OK)
		by[probes.PIDPressure].set(probes.Degraded)
		time.Sleep(5 * time.Minute)
		c.setRefuse(nil)
		time.Sleep(2 * time.Minute)
		if c.has(corev1.TaintNodeMemoryPressure) || !c.has(corev1.TaintNodePIDPressure) {
			t.Error("the Node does not have the newest state")
		}
	})
}

// A refresh of the conditions that failed waits for long before its next try. A
// taint that becomes due does not wait with it.
func TestADueTaintDoesNotWaitWithAHeartbeat(t *testing.T) {
	run(t, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		for range 5 {
			c.setRefuse(apierrors.NewServiceUnavailable("overloaded"))
			time.Sleep(30 * time.Minute)                    // pauses are up to a minute and a half now
			for before := c.count(); c.count() == before; { // one try has just failed
				time.Sleep(10 * time.Millisecond)
			}
			c.setRefuse(nil)
			memory := by[probes.MemoryPressure]
			memory.set(probes.Degraded)
			memory.wake <- struct{}{}
			time.Sleep(2 * time.Second)
			if !c.has(corev1.TaintNodeMemoryPressure) {
				t.Error("the taint waits until the heartbeat is tried again")
			}
			memory.set(probes.OK)
			time.Sleep(3 * time.Hour)
		}
	})
}

// A request that hangs is given up after a while, and the newest state is
// written when the API server answers again.
func TestAHungWriteIsGivenUp(t *testing.T) {
	run(t, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		c.mu.Lock()
		c.hang = true
		c.mu.Unlock()
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(20 * time.Second)
		c.mu.Lock()
		c.hang = false
		c.mu.Unlock()
		time.Sleep(20 * time.Second)
		if !c.has(corev1.TaintNodeMemoryPressure) {
			t.Error("nothing is written after a request that hung")
		}
	})
}

// What was decided before the answer to the last write came does not
// move the time of a transition that this write made.
func TestTransitionTimesOutliveASlowWrite(t *testing.T) {
	cfg := config.Default()
	cfg.Rules = nil // with taints something else would be desired after the answer
	run(t, cfg, func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		c.mu.Lock()
		c.slow = 20 * time.Second
		before := len(c.desired)
		c.mu.Unlock()
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(10 * time.Second) // it is being written
		by[probes.DiskPressure].set(probes.Degraded)
		time.Sleep(time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		var times []time.Time
		for _, desired := range c.desired[before:] {
			for _, condition := range desired.Conditions {
				if condition.Type == "HostMemoryPressure" {
					times = append(times, condition.LastTransitionTime)
				}
			}
		}
		if len(times) != 2 || !times[0].IsZero() || times[1].IsZero() {
			t.Errorf("the transition times that were asked for are %v, want none and then that of the first write", times)
		}
	})
}

// Several changes at the same time are one write.
func TestChangesCloseTogetherAreJoined(t *testing.T) {
	run(t, config.Default(), func(t *testing.T, by map[probes.Condition]*probe, c *client) {
		before := c.count()
		for _, p := range by {
			p.set(probes.Degraded)
		}
		time.Sleep(time.Minute)
		if got := c.count() - before; got > 4 {
			t.Errorf("%d writes for four conditions", got)
		}
		for _, condition := range config.Default().Names() {
			rule := config.Default().Rules[slices.Index(config.Default().Names(), condition)]
			if !c.has(rule.Taint.Key) {
				t.Errorf("%s is missing", rule.Taint.Key)
			}
		}
	})
}
