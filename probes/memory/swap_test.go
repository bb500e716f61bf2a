package memory

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes/probetest"
)

const swapHeader = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

func TestParseFreeSwap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       uint64
		err        string
	}{
		{"none", swapHeader, 0, ""},
		{"a partition", swapHeader + "/dev/sda2                               partition\t8388604\t\t1024\t\t-2\n", 8387580 << 10, ""},
		{"zram", swapHeader + "/dev/zram0 partition 8388604 0 100\n", 0, ""},
		{"zram that was deleted", swapHeader + "/dev/zram10\\040(deleted) partition 8388604 0 100\n", 0, ""},
		{"zram by another path", swapHeader + "/dev/block/zram0 partition 8388604 0 100\n", 0, ""},
		{"not zram", swapHeader + "/var/lib/not-zram0 file 100 40 -2\n", 60 << 10, ""},
		{"a directory called zram", swapHeader + "/srv/zram/swap\\040file file 100 40 -2\n", 60 << 10, ""},
		{"several", swapHeader + "/dev/zram0 partition 100 0 100\n/dev/sda2 partition 10 1 -2\n/swap file 20 0 -3\n", 29 << 10, ""},
		{"full", swapHeader + "/swap file 20 20 -3\n", 0, ""},
		{"2^48-1", swapHeader + "/swap file 281474976710655 0 -3\n", 281474976710655 << 10, ""},
		{"empty", "", 0, "no header"},
		{"no header", "/swap file 20 20 -3\n", 0, "no header"},
		{"no newline", swapHeader + "/swap file 20 20 -3", 0, "cut off"},
		{"header without newline", strings.TrimSuffix(swapHeader, "\n"), 0, "cut off"},
		{"a field too few", swapHeader + "/swap file 20 20\n", 0, "4 fields"},
		{"a field too many", swapHeader + "/swap file file 20 20 -3\n", 0, "6 fields"},
		{"an empty line", swapHeader + "\n", 0, "0 fields"},
		{"negative", swapHeader + "/swap file -20 20 -3\n", 0, "the size"},
		{"negative use", swapHeader + "/swap file 20 -20 -3\n", 0, "the used amount"},
		{"exponent", swapHeader + "/swap file 2e3 20 -3\n", 0, "the size"},
		{"2^63", swapHeader + "/swap file 9223372036854775808 20 -3\n", 0, "the size"},
		{"2^48", swapHeader + "/swap file 281474976710656 0 -3\n", 0, "the size"},
		{"more used than there is", swapHeader + "/swap file 20 21 -3\n", 0, "21 KiB used of 20"},
		{"binary", probetest.Binary, 0, "no header"},
	} {
		got, err := parseFreeSwap(strings.NewReader(test.text))
		if got != test.want && test.err == "" || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d, %v, want %d, %q", test.name, got, err, test.want, test.err)
		}
	}
}

func TestSwapDamage(t *testing.T) {
	t.Parallel()
	damageOptional(t, "proc/swaps", "Swaps", map[string]string{
		"empty": "", "binary": probetest.Binary, "cut off": swapHeader + "/dev/sd",
	})
}

func FuzzParseFreeSwap(f *testing.F) {
	f.Add(swapHeader + "/dev/zram0 partition 100 0 100\n/dev/sda2 partition 10 1 -2\n")
	f.Add(swapHeader)
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		free, err := parseFreeSwap(strings.NewReader(text))
		if err == nil && (free%1024 != 0 || !strings.HasSuffix(text, "\n") || free > 0 && strings.Count(text, "\n") < 2) {
			t.Errorf("%q has %d", text, free)
		}
	})
}
