package decide

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
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

// stage says how far a rule has given way to others who remove its taint.
type stage uint8

const (
	asRuled   stage = iota // the pair of the rule, by the via of the cluster
	standIn                // contested: the stand-in
	withdrawn              // the stand-in was contested too, or a NoExecute pair was removed: nothing
)

// dispute is what a rule remembers of others who removed its taint.
type dispute struct {
	stage  stage
	until  time.Time // a contest ends then
	lostAt time.Time // the last loss, when it was not the second one
}

// lose notes that somebody removed the pair of a rule. One removal of a
// NoExecute pair is a veto. For any other pair the second removal within a
// minute is a contest: first the stand-in takes its place, then nothing does.
func (d dispute) lose(pair, standInPair taints.Pair, now time.Time) dispute {
	if pair.Effect == corev1.TaintEffectNoExecute {
		return dispute{stage: withdrawn}
	}
	if d.lostAt.IsZero() || now.Sub(d.lostAt) > contestWithin {
		d.lostAt = now
		return d
	}
	next := dispute{stage: standIn, until: now.Add(contestFor)}
	if pair == standInPair {
		next.stage = withdrawn
	}
	return next
}

// settle ends what time or recovery ends: a veto when the condition is OK, a
// contest after a day. What was withdrawn comes back only with the condition's
// next set, so that a person who removed it by hand is not overruled.
func (d dispute) settle(level probes.Level, now time.Time) dispute {
	over := !now.Before(d.until)
	if d.stage == withdrawn && level != probes.OK {
		over = false
	}
	if d.stage != asRuled && over {
		return dispute{}
	}
	return d
}

// wanted is one taint that a rule asks for, as it is to stand on the Node.
type wanted struct {
	condition probes.Condition
	level     probes.Level // of the rule
	taint     config.Taint
	via       taints.Via
	ruled     taints.Pair // the pair of the rule
	standIn   taints.Pair // what takes its place when it cannot stay
}

// place returns how and as which pair the rule's taint is to stand on the
// Node; false when others do not let it stand at all.
func place(rule config.Rule, d dispute, facts taints.Facts) (wanted, bool) {
	w := wanted{condition: rule.Condition, level: rule.Level, taint: rule.Taint, ruled: rule.Taint.Pair()}
	w.standIn = taints.StandInFor(rule.Taint.Pair(), facts.StandInPrefix)
	via, pair := taints.Resolve(rule.Taint.Pair(), facts)
	if d.stage == standIn {
		via, pair = taints.StandIn, w.standIn
	}
	w.via, w.taint.Key, w.taint.Effect = via, pair.Key, pair.Effect
	return w, d.stage != withdrawn
}

// disputeNotice tells people what became of the taint that somebody removed.
func disputeNotice(w wanted, by string, now stage) Notice {
	n := Notice{Condition: w.condition}
	who, pair := somebody(by), w.taint.Pair()
	switch {
	case now == standIn:
		n.Kind = TaintContested
		n.Message = fmt.Sprintf("%s removed %s twice within a minute; %s takes its place for 24 h", who, pair, w.standIn)
	case pair.Effect == corev1.TaintEffectNoExecute:
		n.Kind = TaintVetoed
		n.Message = fmt.Sprintf("%s removed %s; it will not be set again until the condition has been OK", who, pair)
	default:
		n.Kind = TaintWithdrawn
		n.Message = fmt.Sprintf("%s removed %s twice within a minute; taintlet gives way for 24 h and until the condition has been OK. To keep taints off for good, set the annotation %s on the Node", who, pair, taints.PausedAnnotation)
	}
	n.Reason = string(n.Kind)
	return n
}

func somebody(fieldManager string) string {
	if fieldManager == "" {
		return "somebody"
	}
	return "field manager " + fieldManager
}
