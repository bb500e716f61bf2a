package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

const (
	// contestWithin: a pair that others remove twice within this time is
	// contested.
	contestWithin = time.Minute
	// contestFor is how long a contest is remembered.
	contestFor = 24 * time.Hour
)

// concession says how far a rule has given way to others who remove its taint.
type concession uint8

const (
	asRuled   concession = iota // the pair of the rule, by the via of the cluster
	standIn                     // contested: the stand-in
	withdrawn                   // the stand-in was contested too, or a NoExecute pair was removed: nothing
)

// dispute is what a rule remembers of others who removed its taint.
type dispute struct {
	conceded concession
	until    time.Time // a contest ends then
	lostAt   time.Time // the last loss, when it was not the second one
}

// lose notes that somebody removed the pair of a rule. One removal of a
// NoExecute pair is a veto. For any other pair the second removal within a
// minute is a contest: first the stand-in takes its place, then nothing does.
func (d dispute) lose(pair, standInPair taints.Pair, now time.Time) dispute {
	if pair.Effect == taints.NoExecute {
		return dispute{conceded: withdrawn}
	}
	if d.lostAt.IsZero() || now.Sub(d.lostAt) > contestWithin {
		d.lostAt = now
		return d
	}
	next := dispute{conceded: standIn, until: now.Add(contestFor)}
	if pair == standInPair {
		next.conceded = withdrawn
	}
	return next
}

// settle ends what time or recovery ends: a veto when the condition is OK, a
// contest after a day. What was withdrawn comes back only with the condition's
// next set, so that a person who removed it by hand is not overruled.
func (d dispute) settle(level probes.Level, now time.Time) dispute {
	over := !now.Before(d.until)
	if d.conceded == withdrawn && level != probes.OK {
		over = false
	}
	if d.conceded != asRuled && over {
		return dispute{}
	}
	return d
}

// isVeto reports whether a NoExecute pair was removed.
func (d dispute) isVeto() bool { return d.conceded == withdrawn && d.until.IsZero() }

// holds says how a dispute keeps a taint from the Node.
func (d dispute) holds() (describe.Hold, time.Time) {
	switch {
	case d.conceded != withdrawn:
		return "", time.Time{}
	case d.isVeto():
		return describe.HeldVetoed, time.Time{}
	}
	return describe.HeldContested, d.until
}

// disputed are the levels that a rule, and so a dispute, can be about.
func disputed() []probes.Level { return []probes.Level{probes.Degraded, probes.Critical} }

// manual is what became of the taint of a rule with ClearManual.
type manual uint8

const (
	unset        manual = iota // no fault, or its taint is not set yet
	awaiting                   // set: it stays until somebody removes it
	acknowledged               // somebody removed it, and the condition is not OK yet
)
