package decide

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// report is what our Node conditions are to say.
type report struct {
	// due: the conditions are to be rendered anew.
	due bool
	// conditions are being written. They do not change until they are written: a
	// message that moves with every sample must not make every sample a write.
	conditions []corev1.NodeCondition
	// asideAt is when the conditions were last due for an aside alone.
	asideAt time.Time
}

// asidesEvery is the least time between two reports that are due for asides, but
// for new suspicions. What comes and goes must not make every sample a write.
const asidesEvery = time.Minute

// aside is what a Node condition says beside its level.
type aside struct {
	// suspicion is the reason with which the host suspects itself; empty: it does
	// not. Its peers read that.
	suspicion string
	// braked: the fleet brake holds the taint back.
	braked bool
}

func (c *condition) aside() aside {
	a := aside{braked: c.request.braked != ""}
	if c.last.Suspicion && c.last.Level == probes.Unknown && c.debounce.Level == probes.OK {
		a.suspicion = c.last.Reason
	}
	return a
}

// heed makes a report due when an aside is not what the Node shows. A suspicion
// that begins is told at once, since others decide by it. All else, its end too,
// is told with the next report, or asidesEvery after the last one for an aside. So
// at most 2 reports in asidesEvery are due to one condition's suspicions.
func (r *report) heed(t *turn, all conditions) {
	var isNews, isUrgent bool
	for i := range all {
		now, shown := all[i].aside(), all[i].shown
		isNews = isNews || now != shown
		isUrgent = isUrgent || now.suspicion != "" && shown.suspicion == ""
	}
	if !r.due && (isUrgent || isNews && t.now.Sub(r.asideAt) >= asidesEvery) {
		r.due, r.asideAt = true, t.now
	}
}

// follow takes in that the conditions were written, and that a heartbeat is due.
func (r *report) follow(in Inputs) {
	if in.Written {
		r.conditions = nil
	}
	r.due = r.due || in.Refresh
}

// render renders the conditions when they are due and every probe has taken a
// sample.
func (r *report) render(t *turn, all conditions, unrecorded bool) {
	if !r.due || !all.allSeen() {
		return
	}
	r.due, r.conditions = false, make([]corev1.NodeCondition, 0, len(all))
	for i := range all {
		shown := all[i].render(t)
		if unrecorded {
			shown.Message += "; taintlet's record does not fit beside the Node's other annotations, so a restart would forget its taints and damping"
		}
		r.conditions = append(r.conditions, shown)
		all[i].shown = all[i].aside()
	}
}

// ReasonBraked is the reason of a Node condition whose taint the fleet brake holds
// back.
const ReasonBraked = "FleetBrake"

// conditionPrefix makes our condition types of the conditions' names.
const conditionPrefix = "Host"

// ConditionType returns the type of our Node condition.
func ConditionType(name probes.Condition) corev1.NodeConditionType {
	return corev1.NodeConditionType(conditionPrefix + string(name))
}

// isOurs reports whether a Node condition's type is one of taintlet's.
func isOurs(kind corev1.NodeConditionType, cfg *config.Config) bool {
	name, found := strings.CutPrefix(string(kind), conditionPrefix)
	return found && slices.ContainsFunc(cfg.Conditions, func(c config.Condition) bool { return string(c.Name) == name })
}

// render makes the Node condition.
func (c *condition) render(t *turn) corev1.NodeCondition {
	shown := corev1.NodeCondition{Type: ConditionType(c.name), Status: corev1.ConditionFalse, Reason: c.last.Reason, Message: c.last.Message}
	blind := c.debounce.seenAt.IsZero() || c.debounce.unknownFor(t.now) >= t.debounce(c.name).UnknownAfter.Duration
	switch {
	case c.debounce.Level > probes.OK:
		shown.Status = corev1.ConditionTrue
		if classOf(c.last) < bad && c.because.Level > probes.OK {
			shown.Reason = c.because.Reason
			shown.Message = c.because.Message + c.nowText()
		}
	case c.request.braked != "":
		shown.Status, shown.Reason = corev1.ConditionUnknown, ReasonBraked
		shown.Message += "; " + c.request.braked
	case blind || c.aside().suspicion != "":
		shown.Status = corev1.ConditionUnknown
	}
	return shown
}
