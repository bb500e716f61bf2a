package verdict

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// What fails because the route is gone is not told: while it is gone, and in the
// rounds before that in which the rest failed too, the one bad reason is the route.
func TestConsequencesOfALostRouteAreNotTold(t *testing.T) {
	t.Parallel()
	cutOff := []change{
		class(Route, Failed, "no route to 10.0.0.1"), class(DNS, Failed, "10.96.0.10: no answer in time"),
		class(Pods, Failed, "10.244.3.2: no answer in time"), class(Local, Failed, "kube-proxy: 503"), reachOnly(0),
	}
	for _, api := range []Outcome{Well, Failed} {
		s := played(10)
		for range 60 {
			o := s.play(1, append(cutOff, class(API, api, "no answer in time"))...)
			if o.Reason != "RouteLost" || o.Level != probes.Degraded || strings.Contains(o.Message, "10.96.0.10") {
				t.Fatalf("API server %v: %+v", api, o)
			}
		}
	}
}
