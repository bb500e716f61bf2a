package main

import "time"

const (
	// kubeletPeriod is how often the kubelet's eviction manager samples
	// (monitoringInterval in pkg/kubelet/kubelet.go).
	kubeletPeriod = 10 * time.Second
	// kubeletTransition is the default of the kubelet's
	// --eviction-pressure-transition-period.
	kubeletTransition = 5 * time.Minute
)

// kubeletRule is how the kubelet decides on its own conditions, from which the
// control plane derives the taints.
type kubeletRule struct {
	tainted bool
	badAt   time.Duration // the last bad sample
}

// next takes one sample and sets at once, or clears once no sample has been bad
// for kubeletTransition. One that could not tell is not a bad one.
func (k kubeletRule) next(s sample, now time.Duration) kubeletRule {
	if s.bad() {
		return kubeletRule{true, now}
	}
	if now-k.badAt >= kubeletTransition {
		k.tainted = false
	}
	return k
}
