package decide_test

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// judge knows what has to hold after each step of a decider, whatever happens to its Node.
// It has a model of its own: what the samples were, who put which taint on the Node, and
// who removed it. All scenarios are played before it, and so is `make exhaust`.
type judge struct {
	// verdict is the first thing that did not hold; empty: all does.
	verdict string
	// isOff: somebody else wrote the record, so that it proves nothing.
	isOff bool
	// ours are the pairs that some process of ours put on the Node. either are those of
	// which a decider cannot know that: others put them there, and the record names them.
	ours, either []taints.Pair
	// bans are taints that others removed so that they must not come back.
	bans []ban
	// losses are when pairs were most recently removed by others.
	losses []loss
	// isUncertain: others removed a pair of ours, and when the decider sees that is its own
	// affair. It may then give way to them, or not.
	isUncertain bool
	// due are removals of which the next step has to tell.
	due []taints.Pair
	// keepFailed is the version of the policy with which the node-lifecycle-controller removed a
	// kept pair, until when no pair may be kept by it.
	keepFailed string
	keepUntil  time.Time
	// evictedAt is when a NoExecute taint was most recently written; zero: never.
	evictedAt time.Time
	process   process
}

type ban struct {
	pair      taints.Pair
	condition probes.Condition
}

type loss struct {
	ban
	at time.Time
}

// process is the judge's model of one process.
type process struct {
	// isRunning: it has read its Node and may write it. hasLanded: a write of it is there.
	isRunning, hasLanded bool
	// set is the record of its newest write that set a taint, seenAt when that was seen on the
	// Node; zero: it was not.
	set      string
	seenAt   time.Time
	evidence [4]evidence
	// spent is how many tokens were taken since the last write, beside those for levels.
	// isChanged: something else than a removal was decided since then.
	spent     int
	isChanged bool
	policy    *decide.Policy
	facts     taints.Facts
	// policies are all that it has had.
	policies []*decide.Policy
}

// knows reports whether a rule that the process has had asks for a pair.
func (p *process) knows(pair taints.Pair) bool {
	return slices.ContainsFunc(p.policies, func(policy *decide.Policy) bool { return policy.Produces(pair) })
}

// evidence is what the samples of one condition said.
type evidence struct {
	class class
	held  time.Duration // without gaps, and without what is not known
	at    time.Time
	// blindSince is since when no sample has been valid; zero: the newest one is.
	blindSince time.Time
	// recent are the samples since the last gap, the newest in bit 0: 1 is bad. isCertain:
	// the newest one needs no second one.
	recent    uint8
	isCertain bool
	// wasBad: a sample was bad since the condition was last decided to be OK.
	wasBad bool
	// isAnnounced: people were told of an eviction that is not over.
	isAnnounced bool
}

type class int

const (
	unseen class = iota
	isGood
	isNear
	isBad
	isCritical
)

// maxGap is the longest time between two samples that belong together.
const maxGap = 11 * time.Minute

func (e *evidence) isBlind() bool { return !e.blindSince.IsZero() }

func (e *evidence) add(o probes.Observation, now time.Time) {
	seen := map[probes.Level]class{probes.OK: isGood, probes.Degraded: isBad, probes.Critical: isCritical}[o.Level]
	if seen == isGood && o.Hysteresis {
		seen = isNear
	}
	if seen == unseen {
		if !e.isBlind() {
			e.blindSince = now
		}
		return
	}
	gap := now.Sub(e.at)
	switch {
	case seen != e.class:
		e.held = 0
	case !e.isBlind() && gap <= maxGap:
		e.held += gap
	}
	if gap > maxGap {
		e.recent = 0
	}
	e.recent, e.isCertain = e.recent<<1, o.Certain && seen >= isBad
	if seen >= isBad {
		e.recent |= 1
		e.wasBad = true
	}
	e.class, e.at, e.blindSince = seen, now, time.Time{}
}

// time does not know that the wall clock was stepped.
func (w *world) time() time.Time { return epoch().Add(w.now) }

// graded returns a sample with the level that the rule for Critical gives it by its reason.
func graded(policy *decide.Policy, o probes.Observation) probes.Observation {
	for _, rule := range policy.Rules {
		if rule.Condition != o.Condition || rule.Level != probes.Critical || len(rule.Reasons) == 0 || o.Level < probes.Degraded {
			continue
		}
		if o.Level = probes.Degraded; slices.Contains(rule.Reasons, o.Reason) {
			o.Level = probes.Critical
		}
	}
	return o
}

func indexOf(name probes.Condition) int { return slices.Index(names(), name) }

func (j *judge) fail(format string, args ...any) {
	if j.verdict == "" && !j.isOff {
		j.verdict = fmt.Sprintf(format, args...)
	}
}

// started takes in that a process starts.
func (j *judge) started(w *world) {
	j.process = process{}
	if w.node.Annotations[taints.RecordAnnotation] == "" { // it is a new Node, to which no process wrote
		j.bans, j.losses = nil, nil
	}
}

// decided judges one Step.
func (j *judge) decided(w *world, before *decide.State, in decide.Inputs, d decide.Decision) {
	p, now := &j.process, w.clock()
	for _, o := range in.Observations {
		if i := indexOf(o.Condition); i >= 0 { // reported conditions are not judged
			p.evidence[i].add(graded(w.policy, o), w.time())
		}
	}
	if in.Node != nil && p.seenAt.IsZero() && p.set != "" && in.Node.Annotations[taints.RecordAnnotation] == p.set {
		p.seenAt = w.time()
	}
	wasRunning := p.isRunning
	p.isRunning = w.state.WhyNotWriting() == "" && (wasRunning || in.Node != nil)
	if p.isRunning && !wasRunning {
		p.inherit(w)
		j.inheritsTokens(w, in)
		if w.node.Annotations[taints.RecordAnnotation] == "" {
			j.evictedAt = time.Time{} // the Node was made anew, and nobody remembers
		}
		isLost := func(pair taints.Pair) bool { return !w.node.Has(pair) }
		j.isUncertain = j.isUncertain || slices.ContainsFunc(w.memo.status(w.node).Owned, isLost) // it counts from now
	}
	if !p.isRunning {
		p.hasLanded = false
		if d.Desired != nil {
			j.fail("it writes, and it must not: %s", w.state.WhyNotWriting())
		}
	}
	if !w.facts.KeepPolicy {
		j.keepFailed = ""
	}
	if p.policy != w.policy || p.facts != w.facts {
		p.policy, p.facts, p.isChanged = w.policy, w.facts, true
	}
	if !slices.Contains(p.policies, w.policy) {
		p.policies = append(slices.Clip(p.policies), w.policy)
	}
	j.leavesToNewer(w, in, d)
	metered := 0
	for _, n := range d.Notices {
		metered += j.noticed(w, n)
	}
	if slices.ContainsFunc(d.Notices, func(n decide.Notice) bool { return n.Kind == decide.Resumed }) {
		metered++ // once, whatever ends
	}
	left := before.Tokens(w.policy, now) - w.state.Tokens(w.policy, now)
	isRestored := left < 0 && !p.hasLanded // from a newer version
	if wasRunning && !isRestored {
		if p.spent += left - metered; left < metered {
			j.fail("%d steps took %d tokens", metered, left)
		}
	}
	for _, pair := range j.due {
		if !slices.ContainsFunc(d.Notices, func(n decide.Notice) bool { return n.Kind == decide.TaintLost && n.Taint.Pair() == pair }) {
			j.fail("nobody is told that %s was removed", pair)
		}
	}
	j.due = nil
	if p.isRunning && wasRunning {
		j.ends(w, in)
		j.explains(w, in, d)
	}
	if d.Desired != nil && in.Slot != decide.SlotHeld && evicts(*d.Desired, in.Node.Node) {
		j.fail("it asks for a NoExecute taint without a slot, and that holds up its whole write")
	}
}

// leavesToNewer judges whether the Node is left alone exactly as long as its record is a newer
// release's.
func (j *judge) leavesToNewer(w *world, in decide.Inputs, d decide.Decision) {
	if in.Node == nil || j.verdict != "" {
		return
	}
	switch isNewer := strings.Contains(in.Node.Annotations[taints.RecordAnnotation], `"version":2`); {
	case isNewer && d.Desired != nil:
		j.verdict = "it writes a Node whose record is a newer release's"
	case !isNewer && w.state.WhyNotWriting() != "":
		j.verdict = "it does not write, although " + w.state.WhyNotWriting() + " no longer"
	}
}

// inheritsTokens judges whether a restart gives tokens that the record does not have.
func (j *judge) inheritsTokens(w *world, in decide.Inputs) {
	r := w.memo.status(in.Node.Node)
	if r.Revision == 0 || r.Boot != w.boot.ID {
		return
	}
	left := func(b decide.WriteBudget, fullAt time.Duration) int {
		missing := max(0, w.boot.At.Add(fullAt).Sub(w.clock()))
		return max(0, b.Burst-int((missing+b.Interval.Duration-1)/b.Interval.Duration))
	}
	most := left(w.policy.Upkeep, r.TokensAt)
	for i := range w.policy.Conditions {
		most += left(w.policy.WriteBudget, r.Conditions[w.policy.Conditions[i].Name].TokensAt)
	}
	if has := w.state.Tokens(w.policy, w.clock()); has > most {
		j.fail("a restarted agent has %d tokens, and by the record %d are left", has, most)
	}
}

// ends judges whether an eviction outlasts its samples.
func (j *judge) ends(w *world, in decide.Inputs) {
	for _, o := range in.Observations {
		i := indexOf(o.Condition)
		if i < 0 || w.state.Level(o.Condition) != probes.Critical {
			continue
		}
		configured, _ := w.policy.Condition(o.Condition)
		switch e := &j.process.evidence[i]; {
		case !e.isBlind() && e.class < isCritical:
			j.fail("%s still evicts after a sample that is not critical", o.Condition)
		case e.isBlind() && w.time().Sub(e.blindSince) >= configured.Debounce.UnknownAfter.Duration:
			j.fail("%s still evicts, and for %s no sample says anything", o.Condition, w.time().Sub(e.blindSince))
		}
	}
}

// explains judges what people are told of a taint that is not set.
func (j *judge) explains(w *world, in decide.Inputs, d decide.Decision) {
	if in.Node == nil {
		return
	}
	for _, desired := range w.state.DesiredTaints() {
		isLate := !in.Node.Has(desired.Pair) && d.Desired == nil && w.job == nil && indexOf(desired.Condition) >= 0 && !desired.IsSoft()
		if isLate && w.state.WhyNot(w.policy, in, desired.Condition, w.clock()) == "" {
			j.fail("nobody is told why %s is not set again", desired.Pair)
		}
	}
	for _, name := range names() {
		paused := decide.PausedBy(in.Node.Node, w.policy, name)
		if w.state.Level(name) <= probes.OK || w.state.IsObserved(name) || paused == describe.HeldObserved {
			continue
		}
		isBan := func(b ban) bool { return b.condition == name && b.pair.Effect != taints.NoExecute }
		switch held := w.state.WhyNot(w.policy, in, name, w.clock()); {
		case held != paused && (held == describe.HeldPaused || held == describe.HeldMaintenance):
			j.fail("%s is said to be held by %s, and is not", name, held)
		case held == "" && !j.isUncertain && w.policy.HasRule(name, probes.Degraded) && slices.ContainsFunc(j.bans, isBan):
			j.fail("nobody is told why %s has no taint", name)
		}
	}
}

// inherit takes in what the record on the Node says of the bad samples of others.
func (p *process) inherit(w *world) {
	record := w.memo.status(w.node)
	hasEvicted := slices.ContainsFunc(record.Owned, func(pair taints.Pair) bool { return pair.Effect == taints.NoExecute })
	for name, c := range record.Conditions {
		if i := indexOf(name); i >= 0 && c.Level > probes.OK {
			p.evidence[i].wasBad = true
			p.evidence[i].isAnnounced = c.Level == probes.Critical && hasEvicted
		}
	}
}

// noticed judges one notice, and returns how many tokens its step takes.
func (j *judge) noticed(w *world, n decide.Notice) (metered int) {
	p := &j.process
	p.isChanged = p.isChanged || n.Kind != decide.TaintLost
	switch n.Kind {
	case decide.LevelChanged:
		return j.levelChanged(w, n)
	case decide.Resumed:
		j.lift(w, func(b ban) bool { return b.pair.Effect != taints.NoExecute })
		j.losses = nil
	case decide.StartupTaintRemoved:
		return 1
	}
	return 0
}

// lift drops the bans that are over. Until that is written, a restart forgets it.
func (j *judge) lift(w *world, isOver func(ban) bool) {
	if slices.ContainsFunc(j.bans, isOver) {
		j.bans = slices.DeleteFunc(slices.Clone(j.bans), isOver)
		j.isUncertain = j.isUncertain || w.writesWait || w.answer != nil || !w.apiUp
	}
}

func (j *judge) levelChanged(w *world, n decide.Notice) (metered int) {
	if indexOf(n.Condition) < 0 {
		if n.To == probes.Degraded {
			return 0
		}
		return 1
	}
	configured, _ := w.policy.Condition(n.Condition)
	e, debounce, now := &j.process.evidence[indexOf(n.Condition)], configured.Debounce, w.time()
	switch n.To {
	case probes.OK:
		if e.class != isGood || e.isBlind() || e.held < debounce.ClearAfter.Duration {
			j.fail("%s clears after %s of good samples", n.Condition, e.held)
		}
		e.wasBad, e.isAnnounced, e.recent = false, false, 0
		j.lift(w, func(b ban) bool { return b.condition == n.Condition })
		j.losses = slices.DeleteFunc(slices.Clone(j.losses), func(l loss) bool { return l.condition == n.Condition })
		return 1
	case probes.Degraded:
		e.isAnnounced = false
		isBadOften := bits.OnesCount8(e.recent&(1<<debounce.Samples-1)) >= debounce.BadSamples
		switch {
		case !e.wasBad:
			j.fail("%s is set without a bad sample", n.Condition)
		case n.From == probes.OK && !e.isCertain && !isBadOften:
			j.fail("%s is set by too few bad samples", n.Condition)
		}
	case probes.Critical:
		e.isAnnounced = true
		switch paused := decide.PausedBy(w.known.Node, w.policy, n.Condition); {
		case e.class != isCritical || e.isBlind() || e.held < debounce.CriticalAfter.Duration:
			j.fail("%s evicts after %s of critical samples", n.Condition, e.held)
		case paused == describe.HeldObserved: // it is only told
		case w.slot != decide.SlotHeld:
			j.fail("%s evicts without a slot", n.Condition)
		case paused != "":
			j.fail("%s evicts although it is held: %s", n.Condition, paused)
		case !j.evictedAt.IsZero() && now.Sub(j.evictedAt) < w.policy.EvictionInterval:
			j.fail("%s evicts %s after the last eviction", n.Condition, now.Sub(j.evictedAt))
		}
		return 1
	}
	return 0
}

// isManual reports whether somebody else removes the taint.
func isManual(policy *decide.Policy, d decide.DesiredTaint) bool {
	return slices.ContainsFunc(policy.Rules, func(r decide.Rule) bool { return r.Clear == decide.ClearManual && r.Taint.Pair() == d.Pair })
}

// objection says what is wrong with adding the taints that are desired; empty: nothing is. A write
// that does not land harms nobody, so it counts when it does.
func (j *judge) objection(w *world, in decide.Inputs, desired *taints.Desired) string {
	for _, d := range w.state.DesiredTaints() {
		if in.Node.Has(d.Pair) || !slices.Contains(desired.Taints, d.Taint()) {
			continue
		}
		if d.IsSoft() || indexOf(d.Condition) < 0 || isManual(w.policy, d) { // they have rules of their own
			continue
		}
		e, isEviction := &j.process.evidence[indexOf(d.Condition)], d.Pair.Effect == taints.NoExecute
		if d.Via == taints.Kept && j.keepFails(w) {
			return fmt.Sprintf("%s is to be kept by a policy that has failed", d.Pair)
		}
		recorded, paused := w.memo.status(w.node).Conditions[d.Condition].Level, decide.PausedBy(in.Node.Node, w.policy, d.Condition)
		switch {
		case !e.wasBad && recorded <= probes.OK:
			return fmt.Sprintf("%s is set without a bad sample", d.Pair)
		case paused != "":
			return fmt.Sprintf("%s is set although %s is held: %s", d.Pair, d.Condition, paused)
		case isEviction && in.Slot != decide.SlotHeld:
			return fmt.Sprintf("%s is set without a slot", d.Pair)
		case isEviction && d.Level == probes.Critical && !e.isAnnounced:
			return fmt.Sprintf("%s is set without an Event", d.Pair)
		}
		for _, b := range j.bans {
			if b.pair == d.Pair && b.condition == d.Condition {
				return fmt.Sprintf("%s is set although others removed it", d.Pair)
			}
		}
	}
	return ""
}

// wrote judges a write of ours that has landed.
func (j *judge) wrote(w *world, before, after *taints.Node, written *job) {
	desired := written.desired
	if written.objection != "" {
		j.fail("%s", written.objection)
	}
	record := w.memo.status(after).Owned
	for _, t := range before.Taints {
		pair := t.Pair()
		isOurs, isTaken := slices.Contains(j.ours, pair) || slices.Contains(j.either, pair), pair.Key == w.policy.Startup.Taint
		switch {
		case !after.Has(pair) && !isOurs && !isTaken:
			j.fail("%s of others is removed", pair)
		case !after.Has(pair) && !isTaken && written != w.late && !j.process.knows(pair):
			j.fail("%s is removed, and no rule of this process asks for it", pair)
		case !after.Has(pair) && taints.ControllerWants(before, pair):
			j.fail("%s is removed although the kubelet's condition is True", pair)
		case !isOurs && after.Has(pair) && slices.Contains(record, pair):
			if isKept := slices.Contains(taints.HeldKeys(after), pair.Key); !isKept {
				j.fail("the record names %s of others", pair)
			}
			j.either = append(slices.Clip(j.either), pair)
		case !isOurs && after.Has(pair) && !slices.Contains(after.Taints, t):
			j.fail("%s of others is changed", pair)
		}
	}
	j.others(before, after)
	isRepair, owned := false, w.memo.status(before).Owned
	for _, t := range after.Taints {
		if pair := t.Pair(); !before.Has(pair) {
			j.ours = append(slices.Clip(j.ours), pair)
			isRepair = isRepair || slices.Contains(owned, pair)
			if pair.Effect == taints.NoExecute {
				j.evictedAt = w.time()
			}
		}
	}
	for _, t := range after.Taints {
		if written != w.late && !before.Has(t.Pair()) {
			j.process.set, j.process.seenAt = after.Annotations[taints.RecordAnnotation], time.Time{}
		}
	}
	j.forget(after)
	for _, pair := range slices.Clone(j.ours) {
		switch {
		case slices.Contains(record, pair):
		case taints.ControllerWants(written.base.Node, pair): // it is left to the controller
			j.ours = slices.DeleteFunc(slices.Clone(j.ours), func(p taints.Pair) bool { return p == pair })
		default:
			j.fail("%s is on the Node and not in the record", pair)
		}
	}
	if p := &j.process; written != w.late && (!taints.Equal(before.Taints, after.Taints) || desired.AnnotationsDiffer(before)) {
		if isRepair && p.hasLanded && p.spent == 0 && !p.isChanged {
			j.fail("a repair without a token: %v", after.Taints)
		}
		p.spent, p.isChanged, p.hasLanded = 0, false, true
	}
}

// others judges whether a write of ours left everything else on the Node as it was.
func (j *judge) others(before, after *taints.Node) {
	for key, value := range after.Annotations {
		if isOurs := key == taints.RecordAnnotation || key == taints.HeldAnnotation; !isOurs && before.Annotations[key] != value {
			j.fail("the annotation %s of others is changed", key)
		}
	}
	for _, c := range before.Conditions {
		if !strings.HasPrefix(c.Type, "Host") && (after.Condition(c.Type) == nil || *after.Condition(c.Type) != c) {
			j.fail("the condition %s of others is changed", c.Type)
		}
	}
}

// forget drops the pairs that are not on the Node any more.
func (j *judge) forget(node *taints.Node) {
	isGone := func(pair taints.Pair) bool { return !node.Has(pair) }
	if slices.ContainsFunc(j.ours, isGone) {
		j.ours = slices.DeleteFunc(slices.Clone(j.ours), isGone)
	}
	if slices.ContainsFunc(j.either, isGone) {
		j.either = slices.DeleteFunc(slices.Clone(j.either), isGone)
	}
}

// othersChanged takes in that others change the Node, or make a new one.
func (j *judge) othersChanged(w *world, next *taints.Node) {
	now := w.time()
	if next.UID != w.node.UID {
		j.ours, j.either = nil, nil
		return
	}
	if next.Annotations[taints.RecordAnnotation] != w.node.Annotations[taints.RecordAnnotation] {
		j.isOff = true
	}
	for _, t := range next.Taints {
		if pair := t.Pair(); !w.node.Has(pair) && slices.Contains(w.memo.status(w.node).Owned, pair) {
			j.either = append(slices.Clip(j.either), pair)
		}
	}
	// A loss that cannot be misunderstood: the decider had seen its taint there, and desires it.
	isSeen := w.apiUp && !w.watchWaits && !w.writesWait && w.answer == nil && w.known == w.read && j.process.hasLanded
	for _, d := range w.state.DesiredTaints() {
		isLost := slices.Contains(j.ours, d.Pair) && !next.Has(d.Pair)
		isPaused := d.Pair.Effect != taints.NoExecute && (w.state.PausedBy(d.Condition) != "" || decide.PausedBy(next, w.policy, d.Condition) != "")
		if isLost && (d.IsSoft() || isManual(w.policy, d)) {
			continue
		}
		if isLost && isSeen && j.isControllers(w, d, next, isPaused) {
			j.due = append(slices.Clip(j.due), d.Pair)
			j.keepFailed, j.keepUntil = w.facts.KeepVersion, now.Add(24*time.Hour)
			continue
		}
		if !isLost || !isSeen || isPaused {
			j.isUncertain = j.isUncertain || isLost
			continue
		}
		j.due = append(slices.Clip(j.due), d.Pair)
		isSame := func(l loss) bool { return l.condition == d.Condition && l.pair.Effect == d.Pair.Effect } // or its stand-in
		at := slices.IndexFunc(j.losses, isSame)
		switch {
		case d.Pair.Effect == taints.NoExecute, at >= 0 && now.Sub(j.losses[at].at) <= time.Minute:
			j.bans = append(slices.Clip(j.bans), ban{d.Pair, d.Condition})
		}
		j.losses = slices.DeleteFunc(slices.Clone(j.losses), isSame)
		j.losses = append(j.losses, loss{ban{d.Pair, d.Condition}, now})
	}
	isDesired := func(pair taints.Pair) bool {
		return slices.ContainsFunc(w.state.DesiredTaints(), func(d decide.DesiredTaint) bool { return d.Pair == pair })
	}
	for _, pair := range w.memo.status(w.node).Owned { // it took over what others had set
		j.isUncertain = j.isUncertain || w.node.Has(pair) && !next.Has(pair) && !slices.Contains(j.ours, pair)
	}
	for _, pair := range j.ours {
		j.isUncertain = j.isUncertain || !next.Has(pair) && !isDesired(pair)
	}
	j.forget(next)
}

// isControllers reports whether it was the node-lifecycle-controller that removed a pair
// which the policy was to keep.
func (j *judge) isControllers(w *world, d decide.DesiredTaint, next *taints.Node, isPaused bool) bool {
	switch by := next.LastWriter; {
	case d.Via != taints.Kept || !w.facts.KeepPolicy || j.keepFails(w) || !slices.Contains(taints.HeldKeys(next), d.Pair.Key):
		return false
	case by == "":
		return !isPaused && !j.process.seenAt.IsZero() && w.time().Sub(j.process.seenAt) <= 2*time.Second
	default:
		return by == "kube-controller-manager" || by == "k3s"
	}
}

// keepFails reports whether no pair may be kept now.
func (j *judge) keepFails(w *world) bool {
	return j.keepFailed != "" && j.keepFailed == w.facts.KeepVersion && w.time().Before(j.keepUntil)
}

// forever plays samples of one kind for some hours, with everything else as it is, and
// judges where that ends: nothing is written any more, and the taints are the right ones.
func (w *world) forever(args []string) error {
	kind := strings.TrimSpace(strings.Join(args, " "))
	w.apiUp, w.writesWait, w.watchWaits, w.late = true, false, false, nil
	if w.known != nil || w.node != nil {
		w.known = w.read
	}
	if w.answer != nil {
		_ = w.hearAnswer([]string{"arrives"})
	}
	if w.job != nil {
		w.land(true)
	}
	var settled []taints.Taint
	for i := range 36 {
		if w.now += 10 * time.Minute; i < 10 {
			w.now -= 9*time.Minute + 30*time.Second
		}
		for _, c := range names()[:2] {
			o, err := observation(c, kind)
			if err != nil {
				return err
			}
			w.sample(o)
		}
		if i == 30 {
			settled = w.node.Taints
		}
	}
	if !taints.Equal(settled, w.node.Taints) {
		w.judge.fail("with samples that are %s for 4 hours the taints still change: %v, then %v", kind, settled, w.node.Taints)
	}
	w.judge.settled(w, kind)
	return nil
}

// settled judges the taints that stand after hours of samples of one kind.
func (j *judge) settled(w *world, kind string) {
	if w.state.WhyNotWriting() != "" {
		return
	}
	for _, pair := range j.ours {
		if kind == "ok" && j.process.knows(pair) && !taints.ControllerWants(w.node, pair) {
			j.fail("%s stands after 4 hours of good samples", pair)
		}
	}
	for _, rule := range w.policy.Rules {
		isDue := kind == "critical" || rule.Level == probes.Degraded && kind == "bad"
		if !isDue || indexOf(rule.Condition) > 1 || decide.PausedBy(w.node, w.policy, rule.Condition) != "" {
			continue
		}
		pair := rule.Taint.Pair()
		if rule.Level == probes.Critical && w.slot != decide.SlotHeld {
			if w.slot == decide.SlotNone && slices.Contains(j.ours, pair) {
				j.fail("%s stands without a slot", pair)
			}
			continue
		}
		isBanned := slices.ContainsFunc(j.bans, func(b ban) bool { return b.condition == rule.Condition })
		facts := w.facts
		facts.KeepPolicy = facts.KeepPolicy && !j.keepFails(w)
		_, resolved := taints.Resolve(pair, facts)
		switch {
		case isBanned, j.isUncertain:
		case !w.node.Has(resolved):
			j.fail("%s is missing after 4 hours of %s samples", resolved, kind)
		case resolved != pair && slices.Contains(j.ours, pair):
			j.fail("%s stands beside its stand-in", pair)
		}
	}
}
