package terminal

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", 12*time.Minute + 50*time.Second: "12 min", time.Hour: "1 h",
		3*time.Hour + 20*time.Minute: "3 h 20 min", 47 * time.Hour: "47 h", 48 * time.Hour: "2 d",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%s) = %q, want %q", d, got, want)
		}
	}
}
