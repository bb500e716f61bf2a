// Package verdict says what rounds of checks of the network mean. It is pure: it has no
// clock and does no I/O, so that the agent, the simulation and tests use the same.
package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Condition is the condition of the verdict.
const Condition = probes.NetworkUnavailable

// Verdict is what the rounds so far mean.
type Verdict struct {
	Observation probes.Observation
	// Note names the Nodes whose Leases are to be noted now, since they may be asked
	// about later.
	Note []string
	// Ask names the Nodes whose Standings are needed now, because this host suspects
	// itself. It stays until Answered is called.
	Ask []string
	// Measures are the quantities behind the Observation.
	Measures []probes.Measure
}

// The reasons by which agents know one another's suspicion, through the API
// server, and the reasons that are worth an Event though nothing is wrong.
const (
	ReasonPeersUnreachable  = "PeersUnreachable"
	ReasonManySuspect       = "ManySuspect"
	ReasonPortBlocked       = "PortBlocked"
	ReasonPeersNeverReached = "PeersNeverReached"
)

// IsSuspicion reports whether a reason says that a host suspects itself.
func IsSuspicion(reason string) bool {
	return reason == ReasonPeersUnreachable || reason == ReasonManySuspect
}

// Judge turns rounds into verdicts. It has no clock and does no I/O: time is what
// the rounds say. The same rounds and the same seed give the same verdicts.
//
// A peer may excuse this host, and never accuse it. A fault of all accuses
// nobody.
type Judge struct {
	period time.Duration
	// first round since the start or a gap, and the newest one.
	first time.Time
	last  time.Time
	slow  bool
	// seen has the classes that were Well since then.
	seen map[Class]bool

	conntrack, api streak
	relatives      [3]relative
	loss           loss
	reach          reach
	// never: many of the peers were never reached.
	never streak
}

// dnsDwell is how long DNS must fail here and be well at others. By then they have
// seen a fault of all.
func dnsDwell(period time.Duration) time.Duration { return 10*time.Second + 2*period }

// lossDwell is that of loss. A fault of all may take half a minute to reach the
// last host, and what each says is counted over a minute.
func lossDwell(period time.Duration) time.Duration { return 30*time.Second + 2*period }

// podsDwell is that of pods. It is longer than pods on a host without power are
// still listed, see suspicionWait: a host with the only one that is left would
// ask those alone.
func podsDwell(period time.Duration) time.Duration { return suspicionWait(period) }

// localDwell is that of the node's own daemons, which every roll-out of the CNI
// restarts.
const localDwell = 90 * time.Second

// NewJudge returns a Judge of rounds that come each period. seed chooses whom to
// ask about and the jitter; it should differ between hosts.
func NewJudge(period time.Duration, seed uint64) *Judge {
	j := &Judge{period: period}
	j.reach.suspicion.random = rand.New(rand.NewPCG(seed, 0))
	j.forget()
	return j
}

// forget drops all evidence.
func (j *Judge) forget() {
	random := j.reach.suspicion.random
	*j = Judge{period: j.period, seen: map[Class]bool{}, relatives: [3]relative{
		{class: Pods, dwell: podsDwell(j.period)}, {class: DNS, dwell: dnsDwell(j.period)}, {class: Local, dwell: localDwell},
	}}
	j.loss.dwell = lossDwell(j.period)
	j.reach.suspicion = suspicion{random: random, wait: suspicionWait(j.period), shortWait: shortWait(j.period), lead: leaseLead(j.period)}
}

// Next takes in a round and says what the rounds so far mean.
func (j *Judge) Next(r Round) Verdict {
	if gap := r.At.Sub(j.last); r.AfterGap || !j.last.IsZero() && (gap < 0 || gap > LongestGap(j.period)) {
		j.forget()
	}
	if j.first.IsZero() {
		j.first = r.At
	}
	j.last = r.At
	j.take(&r)
	return j.verdict(&r)
}

// Answered takes in the Standings that the verdict of this round asked for.
func (j *Judge) Answered(r Round) Verdict {
	j.reach.suspicion.answered(&r)
	return j.verdict(&r)
}

func (j *Judge) verdict(r *Round) Verdict {
	s := &j.reach.suspicion
	return Verdict{Observation: j.judge(r), Note: slices.Clone(s.note), Ask: slices.Clone(s.ask), Measures: j.measures(r)}
}

// take adds a round to the evidence. What failed on a slow host is none.
func (j *Judge) take(r *Round) {
	for c, result := range r.Results {
		if result.Outcome == Well {
			j.seen[c] = true
		}
	}
	j.conntrack.add(r.Outcome(Conntrack) == Failed, r.At)
	j.slow = (r.Late || r.Outcome(Self) == Failed) && hasFailure(r)
	if j.slow {
		return
	}
	j.api.add(r.Outcome(API) == Well, r.At)
	for i := range j.relatives {
		j.relatives[i].add(r)
	}
	j.loss.add(r)
	j.reach.add(r, j.api.holds(0, r.At))
	j.never.add(areManyNeverReached(r), r.At)
}

// hasFailure reports whether anything failed in this round.
func hasFailure(r *Round) bool {
	for _, result := range r.Results {
		if result.Outcome == Failed {
			return true
		}
	}
	return slices.ContainsFunc(r.Peers, func(p PeerResult) bool { return !p.isThere() })
}

// judge returns the first row of the table that holds.
func (j *Judge) judge(r *Round) probes.Observation {
	for _, row := range rows() {
		message, holds := row.finds(j, r)
		if !holds || row.accuses && !j.mayAccuse(r) {
			continue
		}
		o := probes.Observation{
			Condition: Condition, Level: row.level, Hysteresis: row.near || row.nearAtFirst && j.mayBeCutOff(r),
			Suspicion: IsSuspicion(row.reason), Certain: row.certain, Warns: row.warns,
			Severity: j.severity(r, row.level), Reason: row.reason, Message: message,
		}
		if row.level == probes.OK {
			o.NeverWell = j.unproven(r)
		}
		if !j.slow {
			o.Due = j.reach.due(r)
		}
		return o
	}
	return probes.Observation{Condition: Condition} // the last row always holds
}

// mayAccuse reports whether what fails may be this host's fault: the API server
// answers, and this host is in time.
func (j *Judge) mayAccuse(r *Round) bool { return !j.slow && r.Outcome(API) == Well }

// severity is that of the worst evidence, on the level's side of 50. It is 0
// where the level is Unknown.
func (j *Judge) severity(r *Round, level probes.Level) int {
	if level == probes.Unknown {
		return 0
	}
	worst := max(j.reach.severity(), j.loss.severity(r.At))
	for i := range j.relatives {
		worst = max(worst, j.relatives[i].severity(r.At))
	}
	if j.conntrack.now() {
		worst = max(worst, 60)
	}
	if r.Outcome(Route) == Failed {
		worst = 100
	}
	if level == probes.OK {
		return min(worst, 49)
	}
	return max(worst, 50)
}

// Answer is what this host tells its peers, but for the levels. A class is well
// when it failed in none of the last 5 rounds: in doubt a peer is excused.
func (j *Judge) Answer() Answer {
	a := Answer{Version: AnswerVersion, Classes: map[Class]bool{}, Lossy: j.loss.said(), Reach: j.reach.percent()}
	for i := range j.relatives {
		c := &j.relatives[i]
		if c.known {
			a.Classes[c.class] = !c.here.any()
		}
		if len(c.pods) > 0 {
			a.Pods = c.pods
		}
	}
	return a
}

// wellness lists what is known of this host, for the message of a host that is
// well.
func (j *Judge) wellness(r *Round) string {
	var well []string
	for _, c := range Classes() {
		if c != Peers && r.Outcome(c) == Well {
			well = append(well, string(c))
		}
	}
	text := "nothing to compare with"
	if len(well) > 0 {
		text = strings.Join(well, ", ") + " well"
	}
	if j.reach.all > 0 {
		text = fmt.Sprintf("%s; %s", j.reach.String(), text)
	}
	return text
}
