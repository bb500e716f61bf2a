package decide_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

// notRepaired are the reasons of bad samples that make no host need a repair: what pods take
// follows the pods, a person mounts, and mounts read-only, and load alone makes writes slow and
// loses packets.
func notRepaired() []string {
	return []string{
		"MemoryLow", "MemoryStalled", "MemoryStalledFully",
		"SpaceLow", "InodesLow", "WriteNoSpace", "WriteSlow", "MountReadOnly", "NotMounted",
		"PIDsLow", "PIDsExhausted", "PacketLoss",
	}
}

// Each reason of a bad sample is in docs/reasons.md. It either makes the host need a repair
// after 10 minutes, and is listed there as such, or is one of notRepaired.
func TestEachReasonOfARepair(t *testing.T) {
	text, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, found := map[string]bool{}, 0
	_, list := cutAt(string(text), "## Reasons of HostRepairNeeded")
	for _, row := range regexp.MustCompile("(?m)^- `(\\w+)`").FindAllStringSubmatch(list, -1) {
		documented[row[1]] = true
	}
	all := len(notRepaired())
	for _, name := range names() {
		_, section := cutAt(string(text), "## "+string(name))
		section, _ = cutAt(section, "\n## ")
		policy, _ := config.Default().Policy().Condition(name)
		all += len(policy.Repairable)
		for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (Bad|Critical)\\.").FindAllStringSubmatch(section, -1) {
			found++
			reason := row[1]
			isRepaired := slices.Contains(policy.Repairable, reason)
			if isRepaired == slices.Contains(notRepaired(), reason) {
				t.Errorf("%s of %s: decide whether a repair cures it: it is in both lists, or in neither", reason, name)
			}
			if documented[reason] != isRepaired {
				t.Errorf("%s: the list in docs/reasons.md has it: %t, the configuration: %t", reason, documented[reason], isRepaired)
			}
			w := newWorld()
			for _, line := range []string{
				"0s memory ok", fmt.Sprintf("1s..9m51s every 10s %s bad %s", short(name), reason),
				fmt.Sprintf("10m1s %s bad %s", short(name), reason),
			} {
				if got := repairStatus(w); got == taints.ConditionTrue {
					t.Errorf("%s: a repair is needed before 10 minutes", reason)
				}
				if err := w.line(line); err != nil {
					t.Fatal(err)
				}
			}
			if got := repairStatus(w) == taints.ConditionTrue; got != isRepaired {
				t.Errorf("%s: a repair is needed after 10 minutes: %t, want %t", reason, got, isRepaired)
			}
		}
	}
	if found != all {
		t.Errorf("docs/reasons.md has %d reasons of bad samples, the lists %d", found, all)
	}
}

func cutAt(text, heading string) (before, after string) {
	at := regexp.MustCompile(`(?m)` + regexp.QuoteMeta(heading)).FindStringIndex(text)
	if at == nil {
		return text, ""
	}
	return text[:at[0]], text[at[1]:]
}

func repairStatus(w *world) taints.ConditionStatus {
	if shown := w.node.Condition(decide.RepairType); shown != nil {
		return shown.Status
	}
	return ""
}

// In random histories, with restarts, forged records and an API server that is away, the
// status changes at most twice within any hour. It is never Unknown, and the reason of True
// is one that the agent itself has seen.
func TestRepairChangesAtMostTwiceAnHour(t *testing.T) {
	total := 0
	for seed := range uint64(quick(20)) { //nolint:gosec // a small number
		total += len(repairHistory(t, seed))
	}
	t.Logf("%d changes", total)
	if total < 10*quick(20) {
		t.Errorf("only %d changes: the histories show nothing", total)
	}
}

// repairHistory plays a day and returns when the status changed.
func repairHistory(t *testing.T, seed uint64) (changes []time.Duration) {
	t.Helper()
	r, w := random(seed), newWorld()
	w.cfg = fixtures.CloneConfig(w.cfg)
	w.cfg.Repair.After.Duration = []time.Duration{0, time.Minute, 10 * time.Minute}[r.IntN(3)]
	if r.IntN(2) == 0 {
		for _, c := range w.cfg.Conditions {
			c.Common().Debounce.ClearAfter.Duration = time.Duration(r.IntN(60)) * time.Second
		}
	}
	w.policy = w.cfg.Policy()
	samples := []string{"ok", "ok", "near", "bad SpaceLow", "bad FileSystemReadOnly", "certain FileSystemReadOnly", "bad WriteFailed", "unknown"}
	seen, status := map[string]bool{}, taints.ConditionStatus("")
	usual := "ok"
	for w.now < 24*time.Hour {
		w.now += time.Duration(5+r.IntN(55)) * time.Second
		what := []string{"disk", samples[r.IntN(len(samples))]}
		switch n := r.IntN(200); {
		case n == 0:
			what = []string{"restart"}
		case n == 1 && w.node.Annotations[taints.RecordAnnotation] != "":
			forged := []string{"repairEndedAt=1", "repairEndedAt=null", `conditions.DiskPressure={"level":"Degraded","reason":"WriteFailed","faultSince":1,"setAt":1}`}
			w.apiUp = false
			mustEvent(t, w, "record", forged[r.IntN(len(forged))])
			mustEvent(t, w, "restart")
			what = []string{"api", "up"}
		case n == 2:
			what = []string{"api", []string{"down", "up"}[r.IntN(2)]}
		case n == 3:
			what = []string{"heartbeat"}
		case n < 10:
			usual = samples[r.IntN(len(samples))]
			what[1] = usual
		case n < 190:
			what[1] = usual
		}
		if what[0] == "disk" {
			seen[what[1]] = true
			if r.IntN(3) == 0 {
				for _, other := range []string{"memory", "pid", "network"} {
					mustEvent(t, w, other, "ok")
				}
			}
		}
		mustEvent(t, w, what...)
		shown := w.node.Condition(decide.RepairType)
		if shown == nil {
			continue
		}
		switch {
		case shown.Status == taints.ConditionUnknown:
			t.Fatalf("seed %d: Unknown at %s", seed, w.now)
		case shown.Status == taints.ConditionTrue && !seen["bad "+shown.Reason] && !seen["certain "+shown.Reason]:
			t.Fatalf("seed %d: True at %s for %s, which no sample found", seed, w.now, shown.Reason)
		case status != "" && shown.Status != status:
			changes = append(changes, w.now)
			if n := len(changes); n > 2 && changes[n-1]-changes[n-3] < time.Hour {
				t.Fatalf("seed %d: the status changed at %s", seed, changes[n-3:])
			}
		}
		status = shown.Status
	}
	return changes
}

func mustEvent(t *testing.T, w *world, words ...string) {
	t.Helper()
	if err := w.event(words); err != nil {
		t.Fatal(err)
	}
}

// The wait for a clear is named as such, and not as the fault that is gone.
func TestReasonRecovering(t *testing.T) {
	s := newSim(config.Default().Policy())
	s.after(time.Second, sample(probes.MemoryPressure, "certain MemoryLow"))
	for reason, next := range map[string]string{"MemoryLow": "bad MemoryLow", "Recovering": "ok"} {
		twin := s.fork()
		for _, name := range names()[1:] {
			twin.after(0, sample(name, "ok"))
		}
		twin.after(time.Minute, sample(probes.MemoryPressure, next))
		shown := twin.read.Condition(decide.ConditionType(probes.MemoryPressure))
		if got := twin.state.Reason(probes.MemoryPressure); got != reason || shown.Reason != reason || shown.Status != taints.ConditionTrue {
			t.Errorf("%s: the reason is %q, the Node says %s %s", next, got, shown.Status, shown.Reason)
		}
	}
}
