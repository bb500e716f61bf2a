package memory

import (
	"strings"
	"testing"
)

// FuzzPodLimits checks that no limit, usage or counter of a cgroup is read from a file that is
// cut off, and that a limit is above 0.
func FuzzPodLimits(f *testing.F) {
	for _, text := range []string{"max\n", "0\n", "1\n", "9223372036854771712\n", "18446744073709551616\n", "-1\n", "1", "", "anon 1\ninactive_file 4096\n", "inactive_file 1\ninactive_file 2", "\ninactive_file x\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		isWhole := strings.HasSuffix(text, "\n")
		if limit, err := parseLimit(text); err == nil && (limit == 0 || !isWhole) {
			t.Errorf("limit %d of %q", limit, text)
		}
		if amount, err := parseAmount(text); err == nil && !isWhole {
			t.Errorf("amount %d of %q", amount, text)
		}
		if cache, err := parseStat(text, "inactive_file"); err == nil && (!isWhole || !strings.Contains(text, "inactive_file ")) {
			t.Errorf("cache %d of %q", cache, text)
		}
	})
}

// FuzzReclaims checks that no counter is read from a vmstat that is cut off or without it.
func FuzzReclaims(f *testing.F) {
	for _, text := range []string{"", "nr_free_pages 1\nallocstall_normal 3\nallocstall_movable 4\n", "allocstall 7\n", "allocstall_dma -1\n", "allocstall_dma 1", "allocstall_x 18446744073709551615\nallocstall_y 1\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseReclaims(text)
		if err == nil && (!strings.HasSuffix(text, "\n") || r.counted != strings.Contains("\n"+text, "\nallocstall")) {
			t.Errorf("%+v of %q", r, text)
		}
	})
}
