package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// repeatAfter is how often the same line is logged.
	repeatAfter = time.Minute
	// changesInAMinute is how often the same change is logged in that time. A condition that is
	// set, clears and is set again is not a repetition: without its second line, the log would say
	// that it stayed clear.
	changesInAMinute = 10
	// maxRemembered bounds how many lines are remembered for that.
	maxRemembered = 256
)

// calmHandler logs a line that repeats once a minute, and then says how many were
// left out: an API server that is away for a night must not fill the disk.
type calmHandler struct {
	slog.Handler
	told *told
}

type told struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	at              time.Time
	logged, leftOut int
}

func newCalmHandler(h slog.Handler) *calmHandler {
	return &calmHandler{h, &told{lines: map[string]*line{}}}
}

// Handle logs the record unless it repeats a record of the last minute, with the same message and
// attributes. The text of an error, which client-go names err, does not count, because an address
// in it may change. A line about a change is logged more often.
func (h *calmHandler) Handle(ctx context.Context, r slog.Record) error {
	key, most := r.Level.String()+" "+r.Message, 1
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "from" {
			most = changesInAMinute
		}
		if a.Key != "error" && a.Key != "err" {
			key += " " + a.String()
		}
		return true
	})
	leftOut, repeats := h.told.repeats(key, r.Time, most)
	if repeats {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("leftOut", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// repeats reports whether a line was logged as often as it may be in less than a minute,
// and if not, how many were left out before.
func (t *told) repeats(key string, now time.Time, most int) (leftOut int, repeats bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[key]; l != nil {
		if now.Sub(l.at) < repeatAfter {
			if l.logged < most {
				l.logged++
				return 0, false
			}
			l.leftOut++
			return 0, true
		}
		leftOut = l.leftOut
	} else if len(t.lines) >= maxRemembered {
		clear(t.lines)
	}
	t.lines[key] = &line{at: now, logged: 1}
	return leftOut, false
}

// WithAttrs returns a handler that counts with this one.
func (h *calmHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &calmHandler{h.Handler.WithAttrs(attrs), h.told}
}

// WithGroup returns a handler that counts with this one.
func (h *calmHandler) WithGroup(name string) slog.Handler {
	return &calmHandler{h.Handler.WithGroup(name), h.told}
}
