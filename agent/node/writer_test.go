package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/taints"
)

// refuser is an API server that puts off the first request, and says when it was asked.
type refuser struct {
	Memory
	err   error
	asked []time.Time
}

func (r *refuser) Apply(_ context.Context, base *taints.Node, _ taints.Desired) (*taints.Node, error) {
	return base, r.answer()
}

func (r *refuser) KeepPolicy(context.Context, bool) (isPresent bool, version string, err error) {
	return false, "", r.answer()
}

func (r *refuser) answer() error {
	r.asked = append(r.asked, time.Now())
	if len(r.asked) == 1 {
		return r.err
	}
	return nil
}

func (r *refuser) Ping(context.Context) error {
	r.asked = append(r.asked, time.Now())
	return nil
}

// A first taint is tried at once, and the admission policy is looked up at once. The agents of a
// large fleet whose first try the API server put off come back one after another, those of a small
// one at once, and so do all whose try failed for another reason.
func TestCrowdComesBackInTurn(t *testing.T) {
	overload := apierrors.NewTooManyRequests("later", 1)
	for name, c := range map[string]struct {
		err           error
		crowd         time.Duration
		least, atMost time.Duration // between the first and the last of 200 agents
	}{
		"5,000 agents, put off":       {overload, 50 * time.Second, 45 * time.Second, 52 * time.Second},
		"one agent, put off":          {overload, 0, 0, 2 * time.Second},
		"5,000 agents, not connected": {errors.New("connection refused"), 50 * time.Second, 0, 2 * time.Second},
	} {
		for what, ask := range map[string]func(context.Context, *refuser, func() time.Duration){"write": writeTwice, "look-up": lookUp} {
			t.Run(name+", "+what, func(t *testing.T) {
				var second []time.Duration
				for range 200 {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						api, begin := &refuser{err: c.err}, time.Now()
						ask(ctx, api, func() time.Duration { return c.crowd })
						if first := api.asked[0].Sub(begin); first != 0 {
							t.Errorf("the first try came after %s", first)
						}
						second = append(second, api.asked[1].Sub(begin))
					})
				}
				if spread := slices.Max(second) - slices.Min(second); spread < c.least || spread > c.atMost {
					t.Errorf("they come back within %s, want %s to %s", spread, c.least, c.atMost)
				}
			})
		}
	}
}

// slow is an API server that writes slowly, and answers small questions at once.
type slow struct {
	Memory
	takes time.Duration
}

func (s *slow) Apply(ctx context.Context, base *taints.Node, _ taints.Desired) (*taints.Node, error) {
	select {
	case <-ctx.Done():
		return base, ctx.Err()
	case <-time.After(s.takes):
		return base, nil
	}
}

// An API server that has too much to do answers small questions, and takes longer for a write than
// the agent waits at first. The agent waits longer each time until the write is answered.
func TestASlowWriteIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewOutbox(&slow{takes: 35 * time.Second}, nil, time.Now, func() time.Duration { return 0 }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = o.Run(ctx) }() // its error is that of the context
		for begin := time.Now(); ; {
			o.Put(&taints.Node{}, desired(corev1.TaintNodeMemoryPressure))
			if r := <-o.Results; o.Observe(r, func(*taints.Node) bool { return false }) {
				return
			}
			if time.Since(begin) > 5*time.Minute {
				t.Fatal("nothing is written in 5 min")
			}
		}
	})
}

// refusing is an API server that refuses all writes.
type refusing struct {
	Memory
	err   error
	tries int
}

func (r *refusing) Apply(_ context.Context, base *taints.Node, _ taints.Desired) (*taints.Node, error) {
	r.tries++
	return base, r.err
}

// A Node that others write all the time shows signs of life all the time. They do not make the
// writer try without end what is refused.
func TestABusyNodeIsNotWrittenSooner(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		least, most int // tries in a minute
	}{
		"the API server has too much to do": {apierrors.NewServiceUnavailable("overloaded"), 30, 60},
		"a webhook refuses":                 {apierrors.NewForbidden(corev1.Resource("nodes"), "node-0", errors.New("no")), 5, 8},
		"the Node is made anew":             {apierrors.NewNotFound(corev1.Resource("nodes"), "node-0"), 30, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &refusing{err: c.err}
				o := NewOutbox(api, nil, time.Now, func() time.Duration { return 0 }, slog.New(slog.DiscardHandler))
				o.Results = make(chan Result, 1000)
				o.writer.results = o.Results
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = o.Run(ctx) }() // its error is that of the context
				o.Put(&taints.Node{}, desired(corev1.TaintNodeMemoryPressure))
				for begin := time.Now(); time.Since(begin) < time.Minute; {
					time.Sleep(50 * time.Millisecond)
					o.SignOfLife()
				}
				cancel()
				synctest.Wait()
				if api.tries < c.least || api.tries > c.most {
					t.Errorf("%d tries in a minute, want %d to %d", api.tries, c.least, c.most)
				}
			})
		})
	}
}

// slowly is an API server that takes its time for taints, and says when conditions came.
type slowly struct {
	Memory
	takes      time.Duration
	conditions chan time.Time
	isFast     atomic.Bool // it recovered
}

func (s *slowly) Apply(_ context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	if _, differs := desired.Differs(base); differs && !s.isFast.Load() {
		time.Sleep(s.takes)
	}
	if len(desired.Conditions) > 0 {
		s.conditions <- time.Now()
	}
	return desired.ApplyTo(base), nil
}

// While the API server is slow, the agents of a large fleet write their conditions one after
// another. A taint that is decided meanwhile does not wait for that.
func TestConditionsOfACrowdWait(t *testing.T) {
	for name, c := range map[string]struct {
		takes, crowd  time.Duration
		least, atMost time.Duration // between the first and the last of 200 agents
	}{
		"5,000 agents, slow": {2 * time.Second, 50 * time.Second, 45 * time.Second, 50 * time.Second},
		"5,000 agents":       {10 * time.Millisecond, 50 * time.Second, 0, 0},
		"one agent, slow":    {2 * time.Second, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var after []time.Duration
			for range 200 {
				synctest.Test(t, func(t *testing.T) { after = append(after, conditionsAfter(t, c.takes, c.crowd)) })
			}
			if spread := slices.Max(after) - slices.Min(after); spread < c.least || spread > c.atMost {
				t.Errorf("their conditions come within %s, want %s to %s", spread, c.least, c.atMost)
			}
		})
	}
}

// conditionsAfter is when an agent that sets a taint writes its conditions.
func conditionsAfter(t *testing.T, takes, crowd time.Duration) time.Duration {
	t.Helper()
	api := &slowly{takes: takes, conditions: make(chan time.Time, 2)}
	o := NewOutbox(api, nil, time.Now, func() time.Duration { return crowd }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = o.Run(ctx) }() // its error is that of the context
	begin := time.Now()
	o.Put(&taints.Node{}, desired(corev1.TaintNodeMemoryPressure))
	r := <-o.Results
	if r.Err != nil {
		t.Error(r.Err)
	}
	written := (<-api.conditions).Sub(begin)
	if len(api.conditions) > 0 {
		t.Error("the conditions were written twice")
	}
	return written
}

// A webhook that strips taints, behind a slow API server, does not make the writer try them for ever.
func TestStrippedTaintsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &stripping{}
		o := NewOutbox(api, nil, time.Now, func() time.Duration { return time.Second }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = o.Run(ctx) }() // its error is that of the context
		o.Put(&taints.Node{}, desired(corev1.TaintNodeMemoryPressure))
		select {
		case <-o.Results:
		case <-time.After(time.Hour):
			t.Error("no result in an hour")
		}
		if api.writes != 2 {
			t.Errorf("%d writes, want 2", api.writes)
		}
	})
}

// stripping is a slow API server with a webhook that strips what is written.
type stripping struct {
	Memory
	writes int
}

func (s *stripping) Apply(_ context.Context, base *taints.Node, _ taints.Desired) (*taints.Node, error) {
	s.writes++
	time.Sleep(2 * time.Second)
	return base, nil
}

// A taint that is decided while the conditions wait is written at once, or nearly so.
func TestTaintPassesWaitingConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &slowly{takes: 2 * time.Second, conditions: make(chan time.Time, 2)}
		o := NewOutbox(api, nil, time.Now, func() time.Duration { return time.Hour }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = o.Run(ctx) }() // its error is that of the context
		o.Put(&taints.Node{}, desired(corev1.TaintNodeMemoryPressure))
		time.Sleep(3 * time.Second)
		api.isFast.Store(true)
		begin := time.Now()
		o.Put(&taints.Node{}, desired(corev1.TaintNodePIDPressure))
		if <-o.Results; time.Since(begin) > soonest {
			t.Errorf("the second taint came after %s", time.Since(begin))
		}
	})
}

func desired(key string) taints.Desired {
	return taints.Desired{
		Taints:     []taints.Taint{{Key: key, Effect: taints.NoSchedule}},
		Conditions: []taints.NodeCondition{{Type: "HostMemoryPressure", Status: taints.ConditionTrue}},
	}
}

// writeTwice writes a taint, which is put off once.
func writeTwice(ctx context.Context, api *refuser, crowd func() time.Duration) {
	o := NewOutbox(api, nil, time.Now, crowd, slog.New(slog.DiscardHandler))
	go func() { _ = o.Run(ctx) }() // its error is that of the context
	o.Put(&taints.Node{}, desired(corev1.TaintNodeMemoryPressure))
	for range 2 {
		<-o.Results
	}
}

// lookUp asks for the admission policy, and is put off once.
func lookUp(ctx context.Context, api *refuser, crowd func() time.Duration) {
	p := NewPolicyLookup(api, crowd, slog.New(slog.DiscardHandler))
	go func() { _ = p.Run(ctx) }() // its error is that of the context
	p.Ask(false)
	<-p.Answers
}
