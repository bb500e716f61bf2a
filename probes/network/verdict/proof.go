package verdict

import (
	"slices"
	"strings"
)

// proofs are the reasons of Degraded that a good verdict may be silent about, and the
// class that must have been well. RouteLost is none of them: a route that was never
// there is RouteNotKnown. ConntrackDrops says what the kernel counts now.
func proofs() []struct {
	reason string
	by     Class
} {
	return []struct {
		reason string
		by     Class
	}{
		{"PodsUnreachable", Pods}, {"DNSUnreachable", DNS}, {"NodeDaemonFails", Local}, {"PacketLoss", Peers}, {"CutOff", Peers},
	}
}

// unproven returns the reasons that a good verdict says nothing about, separated by
// spaces: their class was not well since the start. So what the Node's record knows as
// failed does not become OK by a restart of the agent.
func (j *Judge) unproven(r *Round) string {
	var reasons []string
	for _, p := range proofs() {
		if result, isOn := r.Results[p.by]; isOn && !j.seen[p.by] && (result.Never || !j.hasNothingToAsk(p.by, r)) {
			reasons = append(reasons, p.reason)
		}
	}
	return strings.Join(reasons, " ")
}

// hasNothingToAsk reports whether a class that is not known has nothing here that
// could fail: no peers or DNS pods are left in the cluster, or no daemon runs here nor
// elsewhere. A host that reaches no API server, or no peer, does not know that.
func (j *Judge) hasNothingToAsk(c Class, r *Round) bool {
	switch c {
	case Peers, Pods:
		return r.Outcome(API) == Well
	case Local:
		return !j.relatives[2].isWellElsewhere() && slices.ContainsFunc(r.Peers, func(p PeerResult) bool { return p.Answer != nil })
	}
	return false
}
