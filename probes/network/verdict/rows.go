package verdict

import (
	"fmt"
	"slices"

	"github.com/taintlet/taintlet/probes"
)

// Condition is the condition of the verdict.
const Condition = probes.NetworkUnavailable

// The reasons by which agents know one another's suspicion, through the API
// server, and the reasons that are worth an Event though nothing is wrong.
const (
	ReasonPeersUnreachable  = "PeersUnreachable"
	ReasonManySuspect       = "ManySuspect"
	ReasonPortBlocked       = "PortBlocked"
	ReasonPeersNeverReached = "PeersNeverReached"

	reasonLargePacketsLost = "LargePacketsLost"
	reasonRouteLost        = "RouteLost"
	reasonPacketLoss       = "PacketLoss"
)

// IsSuspicion reports whether a reason says that a host suspects itself.
func IsSuspicion(reason string) bool {
	return reason == ReasonPeersUnreachable || reason == ReasonManySuspect
}

// row is a row of the verdict's table, in ../README.md too. The first row that
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
	// certain reports whether the evidence was confirmed already, so that one sample is
	// enough; nil: it never is.
	certain func(*evidence, *Round) bool
	// provenBy is the class that must have been well since the start before a good
	// verdict is about this reason; empty: it needs no proof.
	provenBy Class
	// finds returns whether the row holds, and what to say then.
	finds func(*evidence, *Round) (message string, holds bool)
}

// rows returns the table. What accuses comes first, then what is not known, then
// what is well.
func rows() []row { return slices.Concat(accusingRows(), suspicionRows(), unknownRows(), wellRows()) }

// What accuses.
func accusingRows() []row {
	all := []row{
		{
			level: probes.Degraded, reason: reasonRouteLost, provenBy: Route,
			finds: func(e *evidence, r *Round) (string, bool) {
				return r.Results[Route].Detail, e.isSure(r, Route)
			},
		},
		{
			level: probes.Degraded, reason: "ConntrackDrops", provenBy: Conntrack,
			finds: func(e *evidence, r *Round) (string, bool) {
				return r.Results[Conntrack].Detail, e.conntrack.now() && e.conntrack.holds(0, r.At) && e.isSure(r, Conntrack)
			},
		},
	}
	for i, s := range shapes(0) {
		all = append(all, row{
			level: probes.Degraded, reason: s.reason, accuses: true, provenBy: s.provenBy,
			certain: func(e *evidence, r *Round) bool { return s.isCertain || e.comparisons()[i].isAccusedAlone(r.At) },
			finds: func(e *evidence, r *Round) (string, bool) {
				c := e.comparisons()[i]
				if !c.accuses(r.At) {
					return "", false
				}
				return c.String(), true
			},
		})
	}
	return append(all, row{
		level: probes.Degraded, reason: "CutOff", accuses: true, provenBy: Peers, certain: func(*evidence, *Round) bool { return true },
		finds: func(e *evidence, r *Round) (string, bool) {
			return fmt.Sprintf("%s; %s", &e.reach, e.reach.suspicion.found), e.reach.accuses(r.At)
		},
	})
}

// What this host tells the others while it suspects itself.
func suspicionRows() []row {
	return []row{
		{
			reason: ReasonPeersUnreachable,
			finds: func(e *evidence, _ *Round) (string, bool) {
				return e.reach.String() + "; nothing follows before others had time to say the same", e.reach.suspicion.stage == suspect && e.reach.low.now()
			},
		},
		{
			reason: ReasonManySuspect,
			finds: func(e *evidence, _ *Round) (string, bool) {
				return fmt.Sprintf("%s; %s; %s", &e.reach, e.reach.suspicion.found, e.reach.suspicion.conclusion()), e.reach.suspectsMany()
			},
		},
	}
}

// What is not known.
func unknownRows() []row {
	return []row{
		{
			reason: "HostSlow",
			finds: func(e *evidence, _ *Round) (string, bool) {
				return "this host is slow: its own address did not answer in time; what failed in this round is no evidence", e.slow
			},
		},
		{
			reason: "APIServerSilent",
			finds: func(e *evidence, r *Round) (string, bool) {
				for _, row := range e.table {
					if !row.accuses {
						continue
					}
					if message, holds := row.finds(e, r); holds {
						return message + "; API server does not answer, so no taint follows", true
					}
				}
				return "", false
			},
		},
		{
			reason: "SomePeersUnreachable",
			finds: func(e *evidence, r *Round) (string, bool) {
				return e.reach.String() + "; below 80 %, and above 20 %: this host or the others", e.reach.part.holds(0, r.At)
			},
		},
		{
			reason: "NotProven",
			finds: func(e *evidence, r *Round) (string, bool) {
				for i := range e.relatives {
					if c := &e.relatives[i]; c.unproven(r.At) {
						return c.String() + "; that proves nothing against this host", true
					}
				}
				for _, c := range []Class{Route, Conntrack} {
					if r.Outcome(c) == Failed && !e.isSure(r, c) && (c == Route || e.conntrack.holds(0, r.At)) {
						return r.Results[c].Detail + "; nothing else fails, so that proves nothing against this host", true
					}
				}
				if e.reach.hangs.holds(0, r.At) {
					return fmt.Sprintf("%s, and %d of them do not answer in time: packets may get lost that are not tiny; that proves nothing against this host", &e.reach, e.reach.hung), true
				}
				return e.hole.String() + "; that proves nothing against this host", e.hole.unproven(r.At)
			},
		},
		{
			reason: "RouteNotKnown",
			finds: func(e *evidence, r *Round) (string, bool) {
				result, isOn := r.Results[Route]
				return result.Detail, isOn && result.Outcome == NotKnown && (result.IsSure || !result.Never)
			},
		},
		{
			reason: "LossElsewhereToo",
			finds: func(e *evidence, _ *Round) (string, bool) {
				return e.loss.String() + "; that proves nothing against this host", e.loss.unproven()
			},
		},
	}
}

// What is well.
func wellRows() []row {
	return []row{
		{
			level: probes.OK, reason: "NotYetSure", near: true,
			finds: func(e *evidence, _ *Round) (string, bool) { return e.nearly() },
		},
		{
			level: probes.OK, reason: "NeverHealthy", near: true,
			finds: (*evidence).neverWell,
		},
		{
			level: probes.OK, reason: ReasonPeersNeverReached, nearAtFirst: true, warns: true,
			finds: func(e *evidence, r *Round) (string, bool) {
				return r.Results[Peers].Detail + ", which must be open between the Nodes", e.never.holds(neverReachedFor, r.At)
			},
		},
		{
			level: probes.OK, reason: ReasonPortBlocked, warns: true,
			finds: func(e *evidence, r *Round) (string, bool) {
				return fmt.Sprintf("%s; %d of them at their second port only: taintlet's port is blocked", &e.reach, e.reach.other),
					e.reach.blocked.holds(0, r.At)
			},
		},
		{
			level: probes.OK, reason: "NoPeerAnswers",
			finds: func(e *evidence, r *Round) (string, bool) {
				return fmt.Sprintf("%s; %d of them give no answer that can be read, so nothing can be compared", &e.reach, e.reach.silent), e.reach.mute.holds(0, r.At)
			},
		},
		{
			level: probes.OK, reason: "NetworkHealthy",
			finds: func(e *evidence, r *Round) (string, bool) { return e.wellness(r), true },
		},
	}
}

// observe returns the first row of the table that holds.
func (e *evidence) observe(r *Round) probes.Observation {
	for _, row := range e.table {
		message, holds := row.finds(e, r)
		if !holds || row.accuses && !e.mayAccuse(r) {
			continue
		}
		if row.accuses {
			message += "; API server answers"
		}
		o := probes.Observation{
			Condition: Condition, Level: row.level, Hysteresis: row.near || row.nearAtFirst && e.mayBeCutOff(r),
			Suspicion: IsSuspicion(row.reason), Certain: row.certain != nil && row.certain(e, r), Warns: row.warns,
			Severity: e.severity(r, row.level), Reason: row.reason, Message: message,
		}
		if row.level == probes.OK {
			o.NeverHealthy = e.unproven(r)
		}
		if !e.slow {
			o.Due = e.due(r)
		}
		return o
	}
	return probes.Observation{Condition: Condition} // the last row always holds
}

// unproven returns the reasons that a good verdict says nothing about: their class was not
// well since the start. So what the Node's record knows as failed does not become OK by a
// restart of the agent.
func (e *evidence) unproven(r *Round) (reasons []string) {
	for _, row := range e.table {
		result, isOn := r.Results[row.provenBy]
		if !isOn {
			continue
		}
		isUnproven := !e.seen[row.provenBy] && (result.Never || !e.hasNothingToAsk(row.provenBy, r))
		switch row.reason {
		case reasonRouteLost: // a host may be meant to have none
			isUnproven = !e.seen[Route] && r.anyOfRoutes(func(found Result) bool { return found.Outcome == Failed || found.Never })
		case reasonPacketLoss:
			isUnproven = isUnproven || e.reach.all >= fewestPeers && !e.loss.isMeasured
		case reasonLargePacketsLost:
			isUnproven = isUnproven || e.hole.isUntried(r)
		}
		if isUnproven {
			reasons = append(reasons, row.reason)
		}
	}
	return reasons
}
