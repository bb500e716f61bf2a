package describe

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// nextMinute rounds up to a full minute, so that no message announces an end too early.
func nextMinute(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Minute - 1).Truncate(time.Minute)
}

// clockText writes a time as people read it on a clock, with the day if that is not
// today's.
func clockText(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04 UTC")
	}
	return at.Format("2006-01-02 15:04 UTC")
}

// durationText writes a wait, rounded up: "90 s", "2 min", "1 h", "1 h 5 min".
func durationText(d time.Duration) string {
	if seconds := math.Ceil(d.Seconds()); seconds < 120 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	minutes := int(math.Ceil(d.Minutes()))
	var parts []string
	if minutes >= 60 {
		parts = append(parts, fmt.Sprintf("%d h", minutes/60))
	}
	if minutes%60 > 0 {
		parts = append(parts, fmt.Sprintf("%d min", minutes%60))
	}
	return strings.Join(parts, " ")
}

// Cut returns the start of a text from another program.
func Cut(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

// maxQuoted is how many bytes of another program's text are quoted.
const maxQuoted = 200

func somebody(fieldManager string) string {
	if fieldManager == "" {
		return "an unknown client"
	}
	return "field manager " + fieldManager
}

// Removals are how often other clients removed a condition's taints. They are only shown: no
// decision uses them.
type Removals struct {
	Count int
	// By is the field manager of the newest; empty: the API server does not know it.
	By string
	// At is when the newest was noticed.
	At time.Time
}

// text describes the removals; empty: there were none.
func (r Removals) text(now time.Time) string {
	switch r.Count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("taint removed by %s at %s", somebody(r.By), clockText(r.At, now))
	}
	return fmt.Sprintf("taint removed %d times, last by %s at %s", r.Count, somebody(r.By), clockText(r.At, now))
}
