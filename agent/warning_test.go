package agent

import (
	"log/slog"
	"testing"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// A good sample that warns, such as of a blocked port, is told once for each incident of
// its condition, and an incident lasts until a sample is good again. Peers whose port
// was blocked for some time are as if never reached: that is the same incident.
func TestWarningIsReportedOnce(t *testing.T) {
	events := &Told{}
	l := &loop{warned: map[probes.Condition]bool{}, Agent: &Agent{Recorder: events, Log: slog.New(slog.DiscardHandler)}}
	blocked := probes.Observation{Condition: probes.NetworkUnavailable, Level: probes.OK, Warns: true, Reason: "PortBlocked", Message: "reached 12 of 12 peers"}
	good, near, unknown, other, never, fifth := blocked, blocked, blocked, blocked, blocked, blocked
	good.Warns, near.Warns, unknown.Warns, other.Warns = false, false, false, false
	never.Reason, never.Hysteresis = "PeersNeverReached", true
	fifth.Condition, fifth.Reason = "Frost", "DoorOpen"
	good.Reason, near.Reason, unknown.Reason = "NetworkHealthy", "NotYetSure", "ManySuspect"
	near.Hysteresis, unknown.Level, other.Condition = true, probes.Unknown, probes.DiskPressure
	l.tellWarning(blocked)
	l.newest = decide.Read(&taints.Node{})
	for i, step := range []struct {
		o    probes.Observation
		told int
	}{{other, 0}, {good, 0}, {blocked, 1}, {blocked, 0}, {near, 0}, {blocked, 0}, {unknown, 0}, {blocked, 0}, {good, 0}, {blocked, 1}, {never, 0}, {good, 0}, {never, 1}, {never, 0}, {fifth, 1}, {good, 0}, {fifth, 0}, {never, 1}} {
		l.tellWarning(step.o)
		if got := len(events.Take()); got != step.told {
			t.Errorf("sample %d, %s: %d Events", i, step.o.Reason, got)
		}
	}
}
