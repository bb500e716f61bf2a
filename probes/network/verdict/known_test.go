package verdict

import (
	"maps"
	"testing"
)

// People see each class that is known: those in which hosts are compared as the peers are
// told them, and the others as they are now.
func TestKnownClasses(t *testing.T) {
	r := Round{Results: map[Class]Result{
		Route: {Outcome: Well}, API: {Outcome: Failed}, Self: {Outcome: Well}, Peers: {Outcome: NotKnown}, DNS: {Outcome: Well}, Conntrack: {Outcome: Failed},
	}}
	now := map[Class]bool{Route: true, API: false, Self: true, DNS: true, Conntrack: false}
	if got := r.Known(&Answer{}); !maps.Equal(got, now) {
		t.Errorf("nothing is compared: %v, want %v", got, now)
	}
	own := Answer{Classes: map[Class]bool{DNS: false, Pods: true}} // DNS failed a moment ago
	now[DNS], now[Pods] = false, true
	if got := r.Known(&own); !maps.Equal(got, now) {
		t.Errorf("DNS failed a moment ago: %v, want %v", got, now)
	}
	if len(own.Classes) != 2 {
		t.Errorf("the answer to the peers was changed: %v", own.Classes)
	}
}
