package bed

import (
	"strings"
	"testing"
)

// A series is found by its whole name.
func TestMetric(t *testing.T) {
	page := strings.Join([]string{`# HELP a b`, `peers{state="known"} 12`, `answers 9`, `answer 8`, `peers{state="answered"} 7`, `# EOF`}, "\n")
	if got := Metric(page, `peers{state="answered"}`); got != 7 {
		t.Errorf("got %v", got)
	}
	if got := Metric(page, "answer"); got != 8 {
		t.Errorf("got %v, of a series whose name begins alike", got)
	}
	if got := Metric(page, "peers"); got != 0 {
		t.Errorf("a series that is not there is %v", got)
	}
}
