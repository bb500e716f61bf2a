package memory

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/probetest"
)

const swapHeader = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

func TestParseSwap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       swap // in KiB
		err        string
	}{
		{"none", swapHeader, swap{}, ""},
		{"a partition", swapHeader + "/dev/sda2                               partition\t8388604\t\t1024\t\t-2\n", swap{8388604, 8387580}, ""},
		{"zram", swapHeader + "/dev/zram0 partition 8388604 0 100\n", swap{}, ""},
		{"zram that was deleted", swapHeader + "/dev/zram10\\040(deleted) partition 8388604 0 100\n", swap{}, ""},
		{"zram by another path", swapHeader + "/dev/block/zram0 partition 8388604 0 100\n", swap{}, ""},
		{"not zram", swapHeader + "/var/lib/not-zram0 file 100 40 -2\n", swap{100, 60}, ""},
		{"a directory called zram", swapHeader + "/srv/zram/swap\\040file file 100 40 -2\n", swap{100, 60}, ""},
		{"several", swapHeader + "/dev/zram0 partition 100 0 100\n/dev/sda2 partition 10 1 -2\n/swap file 20 0 -3\n", swap{30, 29}, ""},
		{"full", swapHeader + "/swap file 20 20 -3\n", swap{20, 0}, ""},
		{"2^48-1", swapHeader + "/swap file 281474976710655 0 -3\n", swap{281474976710655, 281474976710655}, ""},
		{"empty", "", swap{}, "no header"},
		{"no header", "/swap file 20 20 -3\n", swap{}, "no header"},
		{"no newline", swapHeader + "/swap file 20 20 -3", swap{}, "cut off"},
		{"header without newline", strings.TrimSuffix(swapHeader, "\n"), swap{}, "cut off"},
		{"a field too few", swapHeader + "/swap file 20 20\n", swap{}, "4 fields"},
		{"a field too many", swapHeader + "/swap file file 20 20 -3\n", swap{}, "6 fields"},
		{"an empty line", swapHeader + "\n", swap{}, "0 fields"},
		{"negative", swapHeader + "/swap file -20 20 -3\n", swap{}, "the size"},
		{"negative use", swapHeader + "/swap file 20 -20 -3\n", swap{}, "the used amount"},
		{"exponent", swapHeader + "/swap file 2e3 20 -3\n", swap{}, "the size"},
		{"2^63", swapHeader + "/swap file 9223372036854775808 20 -3\n", swap{}, "the size"},
		{"2^48", swapHeader + "/swap file 281474976710656 0 -3\n", swap{}, "the size"},
		{"more used than there is", swapHeader + "/swap file 20 21 -3\n", swap{}, "21 KiB used of 20"},
		{"binary", probetest.Binary, swap{}, "no header"},
	} {
		got, err := parseSwap(test.text)
		if want := (swap{1024 * test.want.size, 1024 * test.want.free}); got != want && test.err == "" || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %+v, %v, want %+v KiB, %q", test.name, got, err, test.want, test.err)
		}
	}
}

func TestSwapDamage(t *testing.T) {
	t.Parallel()
	damageOptional(t, "proc/swaps", "Swaps", map[string]string{
		"empty": "", "binary": probetest.Binary, "cut off": swapHeader + "/dev/sd",
	})
}

func FuzzParseSwap(f *testing.F) {
	f.Add(swapHeader + "/dev/zram0 partition 100 0 100\n/dev/sda2 partition 10 1 -2\n")
	f.Add(swapHeader)
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSwap(text)
		if err == nil && (s.free%1024 != 0 || s.free > s.size || !strings.HasSuffix(text, "\n") || s.size > 0 && strings.Count(text, "\n") < 2) {
			t.Errorf("%q has %+v", text, s)
		}
	})
}
