package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/taints"
)

// refuser is an API server that puts off the first write, and says when it was asked.
type refuser struct {
	Memory
	err   error
	asked []time.Time
}

func (r *refuser) Apply(_ context.Context, base *taints.Node, _ taints.Desired) (*taints.Node, error) {
	r.asked = append(r.asked, time.Now())
	if len(r.asked) == 1 {
		return base, r.err
	}
	return base, nil
}

// A first taint is tried at once. The agents of a large fleet whose first try the API server
// put off come back one after another, those of a small one at once, and so do all whose
// try failed for another reason.
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
		t.Run(name, func(t *testing.T) {
			var second []time.Duration
			for range 200 {
				synctest.Test(t, func(t *testing.T) { second = append(second, secondTry(t, c.err, c.crowd)) })
			}
			if spread := slices.Max(second) - slices.Min(second); spread < c.least || spread > c.atMost {
				t.Errorf("they come back within %s, want %s to %s", spread, c.least, c.atMost)
			}
		})
	}
}

// secondTry is when an agent tries its taint for the second time.
func secondTry(t *testing.T, err error, crowd time.Duration) time.Duration {
	t.Helper()
	api := &refuser{err: err}
	o := NewOutbox(api, nil, time.Now, func() time.Duration { return crowd }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = o.Run(ctx) }() // its error is that of the context
	begin := time.Now()
	taint := taints.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
	o.Put(&taints.Node{}, taints.Desired{Taints: []taints.Taint{taint}})
	for range 2 {
		<-o.Results
	}
	if first := api.asked[0].Sub(begin); first != 0 {
		t.Errorf("the first try came after %s", first)
	}
	return api.asked[1].Sub(begin)
}
