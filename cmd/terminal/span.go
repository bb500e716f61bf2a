package terminal

import (
	"fmt"
	"time"
)

// Span is a duration in at most two units, such as 3 h 20 min.
func Span(d time.Duration) string {
	d = d.Truncate(time.Second)
	minutes := int(d.Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", minutes)
	case d < 24*time.Hour && minutes%60 == 0, d >= 10*time.Hour && d < 48*time.Hour:
		return fmt.Sprintf("%d h", minutes/60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d d", minutes/60/24)
}
