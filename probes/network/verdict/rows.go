package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// row is a row of the verdict's table, in docs/network.md too. The first row that
// holds is the verdict.
type row struct {
	level  probes.Level
	reason string
	// near: better than a threshold, and not past the easier one.
	near bool
	// nearAtFirst: the same, while this host may be cut off since the agent started.
	nearAtFirst bool
	// warns: people are told, although the network is well.
	warns bool
	// accuses: it holds only while the API server answers and this host is in time.
	accuses bool
	// certain: the evidence was confirmed already, so one sample is enough.
	certain bool
	// evidence and needs are for people.
	evidence, needs string
	// finds returns whether the row holds, and what to say then.
	finds func(*Judge, *Round) (message string, holds bool)
}

// rows returns the table. What accuses comes first, then what is not known, then
// what is well.
func rows() []row { return slices.Concat(accusingRows(), suspicionRows(), unknownRows(), wellRows()) }

// What accuses.
func accusingRows() []row {
	return []row{
		{
			level: probes.Degraded, reason: "RouteLost",
			evidence: "the kernel led to it before and does not now, or the interface has no carrier", needs: "nothing",
			finds: func(_ *Judge, r *Round) (string, bool) {
				return r.Results[Route].Detail, r.Outcome(Route) == Failed
			},
		},
		{
			level: probes.Degraded, reason: "ConntrackDrops",
			evidence: "the connection table dropped packets in 3 of 5 rounds", needs: "nothing",
			finds: func(j *Judge, r *Round) (string, bool) {
				return r.Results[Conntrack].Detail, j.conntrack.now() && j.conntrack.holds(0, r.At)
			},
		},
		relativeRow(0, "PodsUnreachable", "no DNS pod on another Node answers here, 3 of 5 rounds and 50 s", needsPeers+"; where one pod alone is asked, what peers say of that pod; 80 % of the peers reached"),
		relativeRow(1, "DNSUnreachable", "no nameserver answers here, 3 of 5 rounds and 20 s", needsPeers),
		relativeRow(2, "NodeDaemonFails", "a network daemon of the Node is not healthy, 3 of 5 rounds and 90 s", needsPeers),
		{
			level: probes.Degraded, reason: "PacketLoss", accuses: true,
			evidence: "10 % of a minute's connections to peers had retransmits, to half of the peers or more; for 40 s",
			needs:    "the peers' median is three times lower; the same without the peers that lose as much or do not say",
			finds: func(j *Judge, r *Round) (string, bool) {
				return j.loss.String() + "; API server answers", j.loss.accuses(r.At)
			},
		},
		{
			level: probes.Degraded, reason: "CutOff", accuses: true, certain: true,
			evidence: "at most 20 % of the peers reached, 3 of 5 rounds; suspected for 12 s, or for 50 s",
			needs:    "asked about in the API server, all others are well after 12 s, or more than half of 5 after 50 s",
			finds: func(j *Judge, _ *Round) (string, bool) {
				return fmt.Sprintf("%s; %s; API server answers", &j.reach, j.reach.suspicion.found), j.reach.accuses()
			},
		},
	}
}

const needsPeers = "3 peers know the class, or half of those asked, and two thirds of these report it well"

// relativeRow is the row of a class that peers are compared in.
func relativeRow(i int, reason, evidence, needs string) row {
	return row{
		level: probes.Degraded, reason: reason, accuses: true,
		evidence: evidence, needs: needs,
		finds: func(j *Judge, r *Round) (string, bool) {
			return j.relatives[i].String() + "; API server answers", j.relatives[i].accuses(r.At)
		},
	}
}

// What this host tells the others while it suspects itself.
func suspicionRows() []row {
	return []row{
		{
			reason:   ReasonPeersUnreachable,
			evidence: "at most 20 % of the peers reached, 3 of 5 rounds", needs: "nothing yet: others are given time to say the same",
			finds: func(j *Judge, _ *Round) (string, bool) {
				return j.reach.String() + "; nothing follows before others had time to say the same", j.reach.suspicion.stage == suspect
			},
		},
		{
			reason:   ReasonManySuspect,
			evidence: "the same; of those asked about, half or more suspect themselves, or too few count; or the peers that are reached reach a part of theirs",
			needs:    "nothing; others are asked about again each minute",
			finds: func(j *Judge, _ *Round) (string, bool) {
				return fmt.Sprintf("%s; %s; %s", &j.reach, j.reach.suspicion.found, j.reach.suspicion.verdict()), j.reach.suspectsMany()
			},
		},
	}
}

// What is not known.
func unknownRows() []row {
	return []row{
		{
			reason:   "HostSlow",
			evidence: "the control probe or the round itself was late, and something failed", needs: "nothing",
			finds: func(j *Judge, _ *Round) (string, bool) {
				return "this host is slow: its own address did not answer in time; what failed in this round is no evidence", j.slow
			},
		},
		{
			reason:   "APIServerSilent",
			evidence: "something would be accused, but the API server does not answer", needs: "nothing",
			finds: func(j *Judge, r *Round) (string, bool) {
				for _, row := range accusingRows() {
					if message, holds := row.finds(j, r); holds && row.accuses {
						return strings.TrimSuffix(message, "; API server answers") + "; API server does not answer, so nothing is accused", true
					}
				}
				return "", false
			},
		},
		{
			reason:   "SomePeersUnreachable",
			evidence: "20 to 80 % of the peers reached, 3 of 5 rounds", needs: "nothing: it may be this host, or the others",
			finds: func(j *Judge, r *Round) (string, bool) {
				return j.reach.String() + "; below 80 %, and above 20 %: this host or the others", j.reach.part.holds(0, r.At)
			},
		},
		{
			reason:   "NotProven",
			evidence: "pods, dns or local fails here in 3 of 5 rounds, without what its row needs", needs: "nothing",
			finds: func(j *Judge, r *Round) (string, bool) {
				for i := range j.relatives {
					if c := &j.relatives[i]; c.unproven(r.At) {
						return c.String() + "; that proves nothing against this host", true
					}
				}
				return "", false
			},
		},
		{
			reason:   "RouteNotKnown",
			evidence: "the kernel could not tell, or never led to it since the start", needs: "nothing",
			finds: func(_ *Judge, r *Round) (string, bool) {
				result, isOn := r.Results[Route]
				return result.Detail, isOn && result.Outcome == NotKnown
			},
		},
		{
			reason:   "LossElsewhereToo",
			evidence: "the same, without what it needs", needs: "nothing",
			finds: func(j *Judge, _ *Round) (string, bool) {
				return j.loss.String() + "; that proves nothing against this host", j.loss.shows(lossShare) && !j.loss.apart.now()
			},
		},
	}
}

// What is well.
func wellRows() []row {
	return []row{
		{
			level: probes.OK, reason: "NotYetSure", near: true,
			evidence: "something failed in one of the last 5 rounds, or 7 to 10 % of the connections had retransmits", needs: "nothing",
			finds: func(j *Judge, _ *Round) (string, bool) { return j.nearly() },
		},
		{
			level: probes.OK, reason: "NeverWell", near: true,
			evidence: "pods, dns or local fails since the agent started and is well at two thirds of the peers; or no peer was ever reached, for the first 5 min",
			needs:    "nothing: the fault may be older than the agent",
			finds:    (*Judge).neverWell,
		},
		{
			level: probes.OK, reason: ReasonPeersNeverReached, nearAtFirst: true, warns: true,
			evidence: "a fifth of the peers and two of them, or all, were asked three times or more and never reached, for 5 min",
			needs:    "nothing: somebody may keep taintlet's port closed. If none was reached, it clears nothing in the first hour",
			finds: func(j *Judge, r *Round) (string, bool) {
				return r.Results[Peers].Detail + ", which must be open between the Nodes", j.never.holds(neverReachedFor, r.At)
			},
		},
		{
			level: probes.OK, reason: ReasonPortBlocked, warns: true,
			evidence: "20 % of the peers or more answer at their second port only, 3 of 5 rounds", needs: "nothing: the network is well",
			finds: func(j *Judge, r *Round) (string, bool) {
				return fmt.Sprintf("%s; %d of them at their second port only: taintlet's port is blocked", &j.reach, j.reach.other),
					j.reach.blocked.holds(0, r.At)
			},
		},
		{
			level: probes.OK, reason: "NoPeerAnswers",
			evidence: "80 % of the peers or more are reached and give no answer that can be read, 3 of 5 rounds", needs: "nothing: their agents may be down, or of another release",
			finds: func(j *Judge, r *Round) (string, bool) {
				return fmt.Sprintf("%s; %d of them give no answer that can be read, so nothing can be compared", &j.reach, j.reach.silent), j.reach.mute.holds(0, r.At)
			},
		},
		{
			level: probes.OK, reason: "NetworkWell",
			evidence: "none of the above", needs: "nothing",
			finds: func(j *Judge, r *Round) (string, bool) { return j.wellness(r), true },
		},
	}
}

// neverHolds is for how long a host stays as it is because no peer was ever
// reached. In a fleet whose firewalls close the port that is so for ever.
const neverHolds = time.Hour

// neverReachedFor is how long peers must not be reached until the port is named. In
// that time the control plane takes a host without power out of the list.
const neverReachedFor = 5 * time.Minute

// mayBeCutOff reports whether no peer was reached since the start, and that was a
// short time ago.
func (j *Judge) mayBeCutOff(r *Round) bool {
	peers := r.Results[Peers]
	return peers.Outcome == NotKnown && peers.Never && r.At.Sub(j.first) < neverHolds
}

// neverWell reports what fails and was never well since the start.
func (j *Judge) neverWell(r *Round) (string, bool) {
	for i := range j.relatives {
		if c := &j.relatives[i]; c.never && c.isWellElsewhere() {
			return c.String() + "; it was never well since the agent started", true
		}
	}
	return r.Results[Peers].Detail, j.mayBeCutOff(r) && !j.never.holds(neverReachedFor, r.At)
}

// nearly reports what failed too seldom, or not for long enough.
func (j *Judge) nearly() (string, bool) {
	for i := range j.relatives {
		if c := &j.relatives[i]; c.here.any() {
			return c.String() + "; not often or not long enough to tell", true
		}
	}
	switch {
	case j.conntrack.any():
		return "the connection table dropped packets, in fewer than 3 of the last 5 rounds", true
	case j.reach.part.any():
		return j.reach.String() + "; fewer than 80 % in some of the last 5 rounds", true
	case j.loss.shows(lossEasier):
		return j.loss.String() + "; not enough or not long enough to tell", true
	}
	return "", false
}
