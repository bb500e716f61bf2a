// Package exhaust breaks the decider, one line at a time, and asks whether the enumeration
// of its states (TestExhaust in agent/decide) notices.
package exhaust

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// module is the folder of the module, decider that of the decider in it.
const (
	module  = "../.."
	decider = "agent/decide"
)

// mutant is one line of the decider, and a wrong one in its place.
type mutant struct {
	file, before, after string
}

// mutants are wrong in one line each.
func mutants() []mutant {
	return []mutant{
		{"latch.go", `if gap > maxGap {`, `if false {`},
		{"latch.go", `d.held = 0`, `d.held += gap`},
		{"latch.go", `case d.unknownSince.IsZero() && gap <= maxGap:`, `case gap <= maxGap:`},
		{"latch.go", `case d.unknownSince.IsZero() && gap <= maxGap:`, `case d.unknownSince.IsZero():`},
		{"latch.go", `if d.class != critical {`, `if d.class == clear {`},
		{"latch.go", `if d.isClearing() && d.held >= d.ClearAfter(c) {`, `if d.isClearing() {`},
		{"latch.go", `if d.class == critical && d.held >= c.CriticalAfter.Duration {`, `if d.class == critical {`},
		{"latch.go", `if d.certain || bits.OnesCount32(recent) >= c.BadSamples {`, `if d.certain || bits.OnesCount32(recent) > 32 {`},
		{"latch.go", `if d.certain || bits.OnesCount32(recent) >= c.BadSamples {`, `if d.certain || bits.OnesCount32(recent) >= 1 {`},
		{"latch.go", `if level == probes.OK {`, `if false {`},
		{"latch.go", `d.Level > probes.OK && d.class == clear && d.unknownSince.IsZero()`, `d.Level > probes.OK && d.class <= between && d.unknownSince.IsZero()`},
		{"latch.go", `if d.Level == probes.Critical && unknown >= c.UnknownAfter.Duration {`, `if false {`},
		{"latch.go", `return between`, `return clear`},
		{"gate.go", `if now.Before(b.nextAt(c)) {`, `if false {`},
		{"gate.go", `b.fullAt = later(b.fullAt, now).Add(c.Interval.Duration)`, `_ = later(b.fullAt, now)`},
		{"losses.go", `case pair.Effect == taints.NoExecute:`, `case false:`},
		{"losses.go", `now.Sub(d.lostAt) > contestWithin`, `now.Sub(d.lostAt) >= 0`},
		{"losses.go", `now.Sub(d.lostAt) > contestWithin`, `now.Sub(d.lostAt) > removalsFor`},
		{"losses.go", `return dispute{conceded: contested}`, `return dispute{lostAt: now}`},
		{"losses.go", `if level == probes.OK {`, `if level == probes.OK && false {`},
		{"losses.go", `if level == probes.OK {`, `if level == probes.OK || true {`},
		{"gate.go", `case begins && c.isPaused():`, `case false:`},
		{"gate.go", `case adds && c.isPaused():`, `case false:`},
		{"losses.go", `contested: describe.HeldContested, vetoed: describe.HeldVetoed`, `contested: "", vetoed: ""`},
		{"gate.go", `case begins && t.now.Before(again):`, `case false:`},
		{"gate.go", `case t.in.Slot == SlotNone, begins`, `case begins`},
		{"gate.go", `begins && t.in.Slot != SlotHeld`, `begins && t.in.Slot == SlotNone`},
		{"gate.go", `d.Pair.Effect == taints.NoExecute && t.in.Slot != SlotHeld:`, `d.Pair.Effect == taints.NoExecute && t.in.Slot == SlotNone:`},
		{"gate.go", `switch yields := c.disputeOf(d.Level).holds(); {`, `switch yields := c.disputeOf(min(d.Level, probes.Degraded)).holds(); {`},
		{"gate.go", `if t.in.Node != nil && PausedBy(t.in.Node.Node, t.policy, c.name) == "" {`, `if false {`},
		{"gate.go", `if next := b.nextAt(c); now.Before(next) {`, `if next := b.nextAt(c); false {`},
		{"ledger.go", `if before.Produces(pair) && !policy.Produces(pair) && !slices.Contains(l.dropped, pair) {`, `if false {`},
		{"ledger.go", `seen != l.landed && reached(seen, l.landed)`, `seen != l.landed`},
		{"ledger.go", `owned = l.stillOwned(node, owned)`, `_ = l.stillOwned(node, owned)`},
		{"ledger.go", `l.revision = l.landed`, `_ = l.landed`},
		{"ledger.go", `l.landed, l.owned, l.lost = seen, owned, nil`, `l.landed, l.owned = seen, owned`},
		{"ledger.go", `(isDesired(l.desired, pair) || !taints.ControllerWants(node.Node, pair))`, `(isDesired(l.desired, pair) || true)`},
		{"ledger.go", `if l.canProduce(pair) && (isDesired`, `if (isDesired`},
		{"ledger.go", `if d.Via == taints.Kept && node.Has(pair) && !slices.Contains(pairs, pair) {`, `if node.Has(pair) && !slices.Contains(pairs, pair) {`},
		{"record.go", `max(1, l.revision+1), t.now`, `max(1, l.revision), t.now`},
		{"losses.go", `isPaused := s.known(d.Condition).isPaused() && pair.Effect != taints.NoExecute`, `isPaused := s.known(d.Condition).isPaused()`},
		{"losses.go", `slices.Contains(l.lost, pair) || node.Has(pair)`, `node.Has(pair)`},
		{"desired.go", `if c.disputeOf(rule.Level).conceded != asRuled ||`, `if c.disputeOf(rule.Level).conceded == vetoed ||`},
		{"desired.go", `return isOurs || c.debounce.Level >= rule.Level`, `return isOurs || c.debounce.Level == rule.Level`},
		{"record.go", `!c.recorded.remembers(c.entry(s.boot)) {`, `c.recorded.Level != c.debounce.Level {`},
		{"losses.go", `case isBroken: // nobody disputes`, `case isBroken && d.manual: // nobody disputes`},
		{"record.go", `entry.Level == probes.Critical && (!found`, `entry.Level == probes.Unknown && (!found`},
		{"record.go", `s.eviction.at = past(r.EvictedAt)`, `_ = past(r.EvictedAt)`},
		{"record.go", `c.budget = bucket{at(entry.TokensAt)}.within(t.policy.WriteBudget, t.now)`, `c.budget = bucket{}`},
		{"record.go", `dispute{conceded: min(saved.Stage, acknowledged), lostAt: past(saved.LostAt)}`, `dispute{lostAt: past(saved.LostAt)}`},
		{"ledger.go", `return !a.restored || s.isBehind(node.record)`, `return !a.restored`},
		{"ledger.go", `isLater := !a.isSeen && r.Revision`, `isLater := a.isSeen && r.Revision`},
		{"ledger.go", `if a.readOnly {`, `if false {`},
		{"step.go", `isUndone := s.ledger.hasLanded() && differs`, `isUndone := s.ledger.hasLanded() && differs && false`},
		{"step.go", `if isUndone && !s.upkeep.take(t.policy.Upkeep, t.now) {`, `if again := s.upkeep; isUndone && !again.take(t.policy.Upkeep, t.now) {`},
		{"level.go", `target != probes.Degraded && !c.budget.take(t.policy.WriteBudget, t.now):`, `target == probes.OK && !c.budget.take(t.policy.WriteBudget, t.now):`},
		{"level.go", `target != probes.Degraded && !c.budget.take(t.policy.WriteBudget, t.now):`, `target == probes.Critical && !c.budget.take(t.policy.WriteBudget, t.now):`},
		{"pause.go", `d.conceded < vetoed {`, `true {`},
		{"pause.go", `if ends && !s.upkeep.take(t.policy.Upkeep, t.now) {`, `if again := s.upkeep; ends && !again.take(t.policy.Upkeep, t.now) {`},
		{"pause.go", `if s.known(d.Condition).isPaused() && !node.Has(d.Pair)`, `if !s.known(d.Condition).isPaused() && !node.Has(d.Pair)`},
		{"desired.go", `owned = append(owned, l.unasked(t.in.Node, upToMax(l.owned))...)`, `_ = l.unasked(t.in.Node, l.owned)`},
		{"desired.go", `held = append(held, d.Pair.Key)`, `_ = held`},
	}
}

func (m mutant) swap() process.Swap {
	return process.Swap{File: filepath.Join(decider, m.file), Old: m.before, New: m.after}
}

func (m mutant) String() string {
	return fmt.Sprintf("%s: `%s` becomes `%s`", m.file, m.before, m.after)
}

// Each mutant is a line of the decider as it is now.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants() {
		if _, err := process.Overlay(module, t.TempDir(), m.swap()); err != nil {
			t.Error(err)
		}
	}
}

// searches are how the enumeration is run on each mutant: first all sequences of two events,
// and where nobody noticed, longer ones. Each start of an alphabet has a tenth of a second for
// them, and a second if the alphabet is a deep one.
func searches() [][]string {
	return [][]string{{"-exhaust-depth=2"}, {"-exhaust-depth=12", "-exhaust-for=100ms", "-exhaust-patience=10"}}
}

// survives builds a mutant, runs the enumeration and reports whether nobody noticed.
func (m mutant) survives(t *testing.T) bool {
	t.Helper()
	folder := t.TempDir()
	overlay, err := process.Overlay(module, folder, m.swap())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "decide.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", program, "./"+decider) //nolint:gosec // paths of this test
	build.Dir = module
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s does not compile: %v\n%s", m, err, out)
	}
	for _, search := range searches() {
		if m.isNoticed(t, program, search) {
			return false
		}
	}
	return true
}

// isNoticed runs the enumeration of a mutant and reports whether it failed.
func (m mutant) isNoticed(t *testing.T, program string, search []string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, program, append(search, "-test.run=^TestExhaust$", "-test.failfast", "-test.timeout=20m", "-exhaust-first")...) //nolint:gosec // paths of this test
	run.Dir, run.Env = filepath.Join(module, decider), append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && ctx.Err() == nil && strings.Contains(string(out), "--- FAIL: TestExhaust"):
		return true
	}
	t.Fatalf("%s: %v\n%s", m, err, out)
	return false
}

// The enumeration notices most mutants. `make exhaust MUTANTS=1` runs it on all of them, and
// writes which of them live.
func TestMutants(t *testing.T) {
	results := os.Getenv("TAINTLET_MUTANTS")
	if results == "" {
		t.Skip("takes 30 minutes: make exhaust MUTANTS=1")
	}
	if asItIs := (mutant{"gate.go", "package decide", "package decide"}); !asItIs.survives(t) {
		t.Fatal("the decider as it is does not pass, so nothing is known of a broken one")
	}
	var mu sync.Mutex
	tried, survivors := 0, []string{}
	for _, m := range mutants() {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel() // each search takes one processor
			isAlive := m.survives(t)
			mu.Lock()
			defer mu.Unlock()
			if tried++; isAlive {
				survivors = append(survivors, "- "+m.String()+"\n")
			}
			slices.Sort(survivors)
			// A run that is ended early leaves what it found.
			text := fmt.Sprintf("%d of %d mutants tried: %d killed, %d alive:\n\n%s", tried, len(mutants()), tried-len(survivors), len(survivors), strings.Join(survivors, ""))
			if err := os.WriteFile(results, []byte(text), 0o644); err != nil { //nolint:gosec // read by everybody
				t.Fatal(err)
			}
			t.Logf("alive: %t", isAlive)
		})
	}
}
