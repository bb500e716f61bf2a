package process

import (
	"os"
	"testing"

	"github.com/prometheus/procfs"
)

func TestMemoryIsTakenAndGivenBack(t *testing.T) {
	const size = 64 << 20
	before := resident(t)
	pages, err := TakeMemory(size)
	if err != nil {
		t.Fatal(err)
	}
	if taken := resident(t) - before; taken < size*9/10 {
		t.Errorf("%d bytes were taken of %d", taken, size)
	}
	if err := GiveMemory(pages); err != nil {
		t.Fatal(err)
	}
	if left := resident(t) - before; left > size/10 {
		t.Errorf("%d bytes are left of %d", left, size)
	}
}

// resident is the anonymous memory that this process has.
func resident(t *testing.T) int {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	status, err := self.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	return int(status.RssAnon) //nolint:gosec // far below the largest int
}

func TestMemoryOfThisHost(t *testing.T) {
	memory, err := ReadHostMemory()
	if err != nil || memory.Available == 0 || memory.Available > memory.Total {
		t.Errorf("memory %+v, %v", memory, err)
	}
}

func TestOfferToKiller(t *testing.T) {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(file, before, 0o600) //nolint:errcheck // only root may lower it; this process ends soon
	if err := OfferToKiller(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != "1000\n" {
		t.Errorf("%s is %q, %v", file, after, err)
	}
}
