package ask

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

func TestRouteJudges(t *testing.T) {
	t.Parallel()
	led := way{target: outside, by: "eth0"}
	lost := way{target: outside, lost: "no carrier on eth0"}
	unread := way{target: outside, err: errors.New("reading carrier")}
	api := way{target: "API server 10.0.0.1", by: "eth1"}
	apiLost := way{target: "API server 10.0.0.1", lost: "no route to 10.0.0.1"}
	r := NewRoute(thisHost)
	for _, step := range []struct {
		name   string
		ways   []way
		want   verdict.Outcome
		detail string
	}{
		{"lost at first", []way{lost}, verdict.NotKnown, "no carrier on eth0, and none seen since the start"},
		{"not read at first", []way{unread}, verdict.NotKnown, "reading carrier"},
		{"the API server alone", []way{lost, api}, verdict.Well, "API server 10.0.0.1 by eth1 with carrier"},
		{"and then not", []way{lost, apiLost}, verdict.Failed, "no route to 10.0.0.1"},
		{"both", []way{led, api}, verdict.Well, "default route by eth0 with carrier; API server"},
		{"one of both", []way{led, apiLost}, verdict.Failed, "no route to 10.0.0.1"},
		{"not read", []way{unread}, verdict.NotKnown, "reading carrier"},
		{"lost", []way{lost}, verdict.Failed, "no carrier on eth0"},
		{"an API server that was forgotten meanwhile", []way{led, apiLost}, verdict.Well, "default route"},
		{"the API server alone again", []way{{target: outside, lost: "no default route"}, api}, verdict.Failed, "no default route"},
	} {
		got := r.evaluate(step.ways)
		if got.Outcome != step.want || !strings.Contains(got.Detail, step.detail) {
			t.Errorf("%s: %+v, want %v with %q", step.name, got, step.want, step.detail)
		}
	}
}

func TestRouteThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRoute(thisHost)
		release := make(chan struct{})
		r.call.Start(func() []way { <-release; return nil }) // stands for a read that hangs
		got := r.Ask(t.Context(), &verdict.Surroundings{}, time.Second)
		if got.Outcome != verdict.NotKnown || !strings.Contains(got.Detail, "no answer for 1s") {
			t.Errorf("%+v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := r.Ask(ctx, &verdict.Surroundings{}, time.Second); got.Outcome != verdict.NotKnown {
			t.Errorf("%+v", got)
		}
		close(release)
		synctest.Wait()
	})
}
