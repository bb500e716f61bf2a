package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/probetest"
)

// zfsText is arcstats of the host with ZFS.
func zfsText(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(memoryHost("zfs").Proc, "spl/kstat/zfs/arcstats"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseEvictableARC(t *testing.T) {
	t.Parallel()
	// A text with what can be evicted behind other lines, among others that end or begin alike.
	with := func(sizes string, lists ...uint64) string {
		text := "13 1 0x01 147 39984 1 2\nname                            type data\narc_c_min                       4    9\n" + sizes
		for i, name := range []string{"mru_evictable_data", "mru_evictable_metadata", "mfu_evictable_data", "mfu_evictable_metadata"} {
			text += fmt.Sprintf("%-31s 4    %d\n", name, lists[i])
		}
		return text + "compressed_size                 4    8\nsize_x                          4    1\n"
	}
	const sizes = "c_min                           4    2000\nsize                            4    5000\n"
	for _, test := range []struct {
		name, text string
		want       uint64
		err        string
	}{
		{"a real one", zfsText(t), 42 << 30, ""},
		{"all of it", with(sizes, 1000, 1000, 1000, 1000), 3000, ""},
		{"some of each list", with(sizes, 1, 20, 300, 1000), 1321, ""},
		{"pinned", with(sizes, 0, 0, 0, 4), 4, ""},
		{"lists that wrap", with(sizes, 1<<64-1, 1<<64-1, 1, 1), 3000, ""},
		{"smaller than its least size", with("c_min 4 2000\nsize 4 1999\n", 1, 1, 1, 1), 0, ""},
		{"2^64-1", with("c_min 4 0\nsize 4 18446744073709551615\n", 1<<64-1, 1, 1, 1), 1<<64 - 1, ""},
		{"2^64", with("c_min 4 0\nsize 4 18446744073709551616\n", 1, 1, 1, 1), 0, "no number of bytes"},
		{"no size", with("c_min 4 0\n", 1, 1, 1, 1), 0, "no line size"},
		{"no c_min", with("size 4 0\n", 1, 1, 1, 1), 0, "no line c_min"},
		{"no list", "\n" + sizes, 0, "no line mru_evictable_data"},
		{"negative", with("c_min 4 0\nsize 4 -1\n", 1, 1, 1, 1), 0, "no number of bytes"},
		{"exponent", with("c_min 4 0\nsize 4 5e3\n", 1, 1, 1, 1), 0, "no number of bytes"},
		{"another type", with("size 3 5000\n", 1, 1, 1, 1), 0, "no line size"},
		{"no value", with("size 4\n", 1, 1, 1, 1), 0, "no line size"},
		{"empty", "", 0, "no line size"},
		{"no newline", strings.TrimSuffix(zfsText(t), "\n"), 0, "cut off"},
		{"binary", probetest.Binary, 0, "cut off"},
	} {
		got, err := parseEvictableARC(test.text)
		if got != test.want && test.err == "" || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d, %v, want %d, %q", test.name, got, err, test.want, test.err)
		}
	}
}

// LXCFS shows the memory of a container, and the cache is that of its machine.
func TestCacheOfAnotherMemoryDoesNotCount(t *testing.T) {
	t.Parallel()
	h := probetest.CopyOfHealthy(t)
	probetest.Write(t, h, "proc/spl/kstat/zfs/arcstats", zfsARC(6<<30))
	s, err := readHost(t, h, sample{})
	if err != nil || s.arc != 6<<30 {
		t.Errorf("without LXCFS: %+v, %v", s, err)
	}
	probetest.Write(t, h, "proc/self/mountinfo", strings.Repeat("x", 70_000)+"\n1206 1149 0:61 /proc/meminfo "+h.Proc+"/meminfo rw,nosuid,nodev,relatime - fuse.lxcfs lxcfs rw,user_id=0\n")
	if s, err := readHost(t, h, sample{}); err != nil || s.arc != 0 || s.unread != nil {
		t.Errorf("with LXCFS: %+v, %v", s, err)
	}
	probetest.Remove(t, h, "proc/self/mountinfo")
	probetest.Write(t, h, "proc/spl/kstat/zfs/arcstats", zfsARC(1<<50))
	if s, err := readHost(t, h, sample{}); err != nil || s.arc != 0 {
		t.Errorf("larger than the memory: %+v, %v", s, err)
	}
}

// zfsARC is arcstats of a cache that can be evicted whole.
func zfsARC(size uint64) string {
	return fmt.Sprintf("\nc_min 4 0\nsize 4 %d\nmru_evictable_data 4 %[1]d\nmru_evictable_metadata 4 0\nmfu_evictable_data 4 0\nmfu_evictable_metadata 4 0\n", size)
}

// The cache and MemAvailable count a few pages twice; together they are never
// more than the memory.
func TestARCAndAvailableAreAtMostTheMemory(t *testing.T) {
	t.Parallel()
	h := probetest.CopyOfHealthy(t)
	if err := os.MkdirAll(filepath.Join(h.Proc, "spl/kstat/zfs"), 0o700); err != nil {
		t.Fatal(err)
	}
	probetest.Write(t, h, "proc/spl/kstat/zfs/arcstats", zfsARC(16777216000))
	s, err := readHost(t, h, sample{})
	if err != nil || s.available != 16777216000 || s.arc != 16777216000-8192000*1024 {
		t.Errorf("%+v, %v", s, err)
	}
}

func FuzzParseEvictableARC(f *testing.F) {
	f.Add(zfsText(f))
	f.Add(zfsARC(1))
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		evictable, err := parseEvictableARC(text)
		if err == nil && (!strings.HasSuffix(text, "\n") || evictable > 0 && !strings.Contains(text, "\nsize ")) {
			t.Errorf("%q has %d", text, evictable)
		}
	})
}
