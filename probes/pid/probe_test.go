package pid

import (
	"testing"
	"time"
)

// The nearer the threshold, the less headroom.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	for used, want := range map[uint64]time.Duration{
		232:    2762 * time.Millisecond, // 27,852 may be used below 85 %
		7852:   2 * time.Second,
		26_852: 100 * time.Millisecond,
		27_851: time.Nanosecond,
		27_852: 0, // Degraded
	} {
		if o := somePIDs.judge(tasks(used, 32768, 127000)); (o.Headroom - want).Abs() > time.Millisecond {
			t.Errorf("%d used: %s (%s), want %s", used, o.Headroom, o.Message, want)
		}
	}
}
