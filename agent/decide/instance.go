package decide

import (
	"time"
)

// instance is one run of the agent. A Node may have several agents: a second
// DaemonSet, a run by hand, a pod that is being replaced. The instance that
// started last is active and writes the Node; the others are on standby.
type instance struct {
	Name string `json:"name"`
	// Term is one more than the term that the instance found in the record when
	// it started. So it tells who started later without comparing clocks, and
	// the record of an instance that was killed locks nobody out.
	Term uint64 `json:"term"`
	// StartedAt decides between two that found no record: time since boot.
	StartedAt time.Duration `json:"startedAt"`
}

// signOfLife changes whenever the active agent writes its Node.
type signOfLife struct {
	record    string
	heartbeat time.Time
}

// active says whether this instance writes the Node.
type active struct {
	instance instance
	// restored: a Node, and so its record, has been read. Before that evidence
	// is collected, but nothing is decided.
	restored bool
	// source is the revision of that record; 0: there was none. isSeen: a record of this
	// instance was seen on the Node.
	source uint64
	isSeen bool
	// readOnly: the newest version of the Node has a newer release's record. The
	// Node is left as it is.
	readOnly bool
	// other is the newer instance that is active; no name: there is none.
	other instance
	// heard is the other's newest sign of life, heardAt when it was seen.
	heard   signOfLife
	heardAt time.Time
}

func (a active) isStandby() bool { return a.other.Name != "" }

// isOlderThan reports whether the other instance started after this one. Terms are
// compared round the clock (RFC 1982), so that a forged one cannot be the last.
// isSameBoot: it wrote in this boot of the host, so the time since boot tells.
func (i instance) isOlderThan(other instance, isSameBoot bool) bool {
	if other.Name == "" || other.Name == i.Name {
		return false
	}
	if later := int64(other.Term - i.Term); later != 0 { //nolint:gosec // the wrap is meant
		return later > 0
	}
	if isSameBoot && other.StartedAt != i.StartedAt {
		return other.StartedAt > i.StartedAt
	}
	return other.Name > i.Name // on two hosts no clock decides
}
