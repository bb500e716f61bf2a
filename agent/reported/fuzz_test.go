package reported

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// FuzzCondition checks that a condition of others is Degraded only by its bad status, and
// that its texts are short, of one line and of a usual form.
func FuzzCondition(f *testing.F) {
	f.Add("True", "KernelHasDeadlock", "a task hangs", "True", int64(0))
	f.Add("False", "", "", "False", int64(time.Minute))
	f.Add("Unknown", "a b", strings.Repeat("long ", 1000), "True", int64(1))
	f.Add("True", "Odd", "a"+strings.Repeat("ä", 150), "True", int64(0))
	f.Add("\x1b[2J", "\x00", "\xff\xfe\r\n", "\x1b[2J", int64(-1))
	f.Fuzz(func(t *testing.T, status, reason, message, bad string, staleAfter int64) {
		o := &Options{Type: "KernelDeadlock", BadStatus: bad == "True", StaleAfter: time.Duration(staleAfter)}
		now := time.Unix(1000, 0)
		before := sighting{}.next(&taints.NodeCondition{}, now)
		sample := o.judge(before.next(&taints.NodeCondition{Status: taints.ConditionStatus(status), Reason: reason, Message: message}, now), now)
		isKnown := status == "True" || status == "False"
		if isBad := sample.Level >= probes.Degraded; isBad != (isKnown && (status == "True") == (bad == "True")) || sample.Level > probes.Degraded {
			t.Errorf("status %q is %s, where %q is bad", status, sample.Level, bad)
		}
		if len(sample.Message) > 500 || strings.ContainsAny(sample.Message, "\n\r\x00\x1b") || !utf8.ValidString(sample.Message) {
			t.Errorf("the message is %q", sample.Message)
		}
		if !probes.IsReason(sample.Reason) {
			t.Errorf("the reason is %q", sample.Reason)
		}
	})
}
