package ask

import (
	"os"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/probetest"
)

// Headings of two kernels.
const (
	stat518 = "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n"
	stat415 = "entries  searched found new invalid ignore delete delete_list insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n"
	cpu0    = "00000007  00000000 00000000 00000000 00000002 00000049 00000000 00000000 00000000 00000000 0000000a 00000000 00000000  00000000 00000000 00000000 00000000\n"
	// The same with a drop that was a race.
	clash = "00000007  00000000 00000000 00000000 00000002 00000049 00000000 00000000 00000000 00000001 0000000b 00000000 00000000  00000000 00000000 00000000 00000000\n"
	// What Linux 6.18 wrote after 4000 connections, with room for 2000.
	full = "000007d0  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 000006e8 000000e8 00000000  00000000 00000000 00000000 00000000\n" +
		"000007d0  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000  00000000 00000000 00000000 00000000\n"
	cpu1 = "00000007  00000000 00000000 00000000 00000002 00000049 00000000 00000000 00000000 00000000 ffffffff 00000000 00000000  00000000 00000000 00000000 00000000\n"
)

func TestParseDrops(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       int64
		err        string
	}{
		{"one processor", stat518 + cpu0, 10, ""},
		{"two, an older kernel", stat415 + cpu0 + cpu1, 10 + 1<<32 - 1, ""},
		{"a race", stat518 + clash, 10, ""},
		{"a full table", stat518 + full, 0x6e8, ""},
		{"empty", "", 0, "heading is missing"},
		{"no processor", stat518, 0, "no processor"},
		{"another heading", "entries found\n1 2\n", 0, "lacks drop or insert_failed"},
		{"cut off", stat518 + cpu0[:40], 0, "cut off"},
		{"cut off at the very end", stat518 + strings.TrimSuffix(cpu0, "\n"), 0, "cut off"},
		{"short line", stat518 + "00000007\n", 0, "a line of 1 columns instead of 17"},
		{"not hexadecimal", stat518 + strings.Replace(cpu0, "0000000a", "0000000x", 1), 0, "not a hexadecimal number"},
		{"too large", stat518 + strings.Replace(cpu0, "0000000a", "10000000a", 1), 0, "32 bits"},
		{"binary", probetest.Binary, 0, "lacks drop"},
	} {
		got, err := parseDrops(test.text)
		switch {
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("%s: %d, %v, want %d", test.name, got, err, test.want)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: %d, %v, want an error with %q", test.name, got, err, test.err)
		}
	}
}

func TestConntrackFollowsTheCount(t *testing.T) {
	t.Parallel()
	c := &Conntrack{}
	for i, step := range []struct {
		drops int64
		want  verdict.Outcome
	}{{1000, verdict.Well}, {1000, verdict.Well}, {1001, verdict.Failed}, {1001, verdict.Well}, {5000, verdict.Failed}, {3, verdict.Well}, {4, verdict.Failed}} {
		if got := c.evaluate(step.drops); got.Outcome != step.want {
			t.Errorf("step %d: %+v, want %v", i, got, step.want)
		}
	}
}

func TestConntrackThatIsNotRead(t *testing.T) {
	t.Parallel()
	h := probes.Host{Proc: t.TempDir()}
	c := &Conntrack{host: h}
	if got := c.Ask(t.Context(), nil, patience); got.Outcome != verdict.NotKnown || got.Detail != "this host tracks no connections" {
		t.Errorf("no file: %+v", got)
	}
	if err := os.MkdirAll(h.Proc+"/net/stat", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.Proc+"/net/stat/nf_conntrack", []byte(stat518), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.Ask(t.Context(), nil, patience); got.Outcome != verdict.NotKnown || !strings.Contains(got.Detail, "no processor") {
		t.Errorf("a garbled file: %+v", got)
	}
}

func FuzzParseDrops(f *testing.F) {
	f.Add(stat518 + cpu0)
	f.Add(stat415 + cpu0 + cpu1)
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseDrops(text); err == nil && !strings.HasSuffix(text, "\n") {
			t.Errorf("%q is cut off and was understood", text)
		}
	})
}

// The limit of the table belongs to the whole machine, so no test may fill it. This
// one shows that a real file is understood.
func TestConntrackOfARealHost(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t, "nft")
	if !inside {
		return
	}
	probetest.Sh(t, `nft add table inet t
nft add chain inet t out { type filter hook output priority 0 ; }
nft add rule inet t out ct state new counter`)
	c := &Conntrack{host: h}
	for range 2 {
		if got := c.Ask(t.Context(), nil, patience); got.Outcome != verdict.Well {
			t.Errorf("%+v", got)
		}
	}
}
