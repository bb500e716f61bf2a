package faults

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/fixtures"
)

// health is what the files of a host say of a condition.
type health int

const (
	good health = iota
	bad
	critical
	unreadable
	cutOff // what the files say cannot be read either
)

func (h health) String() string {
	return []string{"good", "bad", "critical", "unreadable", "cut off"}[h]
}

// span is a time in which the files said the same.
type span struct {
	begin, end time.Time // end zero: now
	health     health
}

// host is a host of files and what they said since the beginning.
type host struct {
	files *fixtures.Host

	mu    sync.Mutex
	spans map[probes.Condition][]span
}

func newHost(t testing.TB) *host {
	h := &host{files: fixtures.NewHost(t), spans: map[probes.Condition][]span{}}
	for _, condition := range []probes.Condition{probes.MemoryPressure, probes.DiskPressure, probes.PIDPressure, probes.NetworkUnavailable} {
		h.spans[condition] = []span{{begin: time.Now()}}
	}
	h.mountScratch(t)
	return h
}

// set makes the files say that from now on.
func (h *host) set(condition probes.Condition, to health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	spans := h.spans[condition]
	if spans[len(spans)-1].health == to {
		return
	}
	begin := time.Now()
	h.write(condition, to)
	spans[len(spans)-1].end = time.Now() // an agent may have read either while it was written
	h.spans[condition] = append(spans, span{begin: begin, health: to})
}

// write has the host say it.
func (h *host) write(condition probes.Condition, to health) {
	file := map[probes.Condition]string{probes.MemoryPressure: "proc/meminfo", probes.PIDPressure: "proc/loadavg"}[condition]
	switch {
	case condition == probes.DiskPressure:
		h.fill(to == bad)
	case to == unreadable:
		h.files.Remove(file)
	case to == cutOff:
		h.files.Write(file, map[probes.Condition]string{probes.MemoryPressure: "MemTotal:       16777216 kB\nMemFr", probes.PIDPressure: "0.10 0.20 0.3"}[condition])
	case condition == probes.PIDPressure:
		h.files.Tasks(map[health]int{good: 100, bad: 29000, critical: 32000}[to])
	default:
		h.files.Memory(map[health]int{good: 50, bad: 2}[to])
	}
}

// isBlind reports whether some condition cannot be seen now.
func (h *host) isBlind() bool {
	return h.now(probes.MemoryPressure) >= unreadable || h.now(probes.PIDPressure) >= unreadable
}

// now is what the files say.
func (h *host) now(condition probes.Condition) health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spans[condition][len(h.spans[condition])-1].health
}

// stretches are the times in which the files said that, joined where one follows another.
func (h *host) stretches(condition probes.Condition, is func(health) bool) []span {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []span
	goesOn := false
	for _, s := range h.spans[condition] {
		if s.end.IsZero() {
			s.end = time.Now()
		}
		switch {
		case is(s.health) && goesOn:
			all[len(all)-1].end = s.end
		case is(s.health):
			all = append(all, s)
		}
		goesOn = is(s.health)
	}
	return all
}

// wasSince reports whether the files said that, or worse, for so long at a stretch at some
// time since then.
func (h *host) wasSince(since time.Time, condition probes.Condition, least time.Duration, is func(health) bool) bool {
	return slices.ContainsFunc(h.stretches(condition, is), func(s span) bool {
		return s.end.After(since) && s.end.Sub(s.begin) >= least
	})
}

// recovered reports whether the files said the better for so long at a stretch, after they
// had said the worse at some time since then. The stretch has ended within lateness.
func (h *host) recovered(since time.Time, condition probes.Condition, least time.Duration, worse, better func(health) bool) bool {
	bad := h.stretches(condition, worse)
	first := slices.IndexFunc(bad, func(s span) bool { return s.end.After(since) })
	return first >= 0 && slices.ContainsFunc(h.stretches(condition, better), func(s span) bool {
		return s.begin.After(bad[first].begin) && s.end.After(time.Now().Add(-lateness)) && s.end.Sub(s.begin) >= least
	})
}

func isGood(h health) bool        { return h == good }
func isBad(h health) bool         { return h == bad || h == critical }
func isCritical(h health) bool    { return h == critical }
func isNotCritical(h health) bool { return h == good || h == bad }
