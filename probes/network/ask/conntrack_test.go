package ask

import (
	"errors"
	"fmt"
	"os"
	"reflect"
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
		want       counts
		err        string
	}{
		{"one processor", stat518 + cpu0, counts{drop: 10}, ""},
		{"two, an older kernel", stat415 + cpu0 + cpu1, counts{drop: 10 + 1<<32 - 1}, ""},
		{"a race", stat518 + clash, counts{drop: 11, insertFailed: 1}, ""},
		{"a full table", stat518 + full, counts{drop: 0x6e8}, ""},
		{"empty", "", counts{}, "lacks drop"},
		{"no processor", stat518, counts{}, "no processor"},
		{"another heading", "entries found\n1 2\n", counts{}, "lacks drop or insert_failed"},
		{"cut off", stat518 + cpu0[:40], counts{}, "cut off"},
		{"cut off at the very end", stat518 + strings.TrimSuffix(cpu0, "\n"), counts{}, "cut off"},
		{"short line", stat518 + "00000007\n", counts{}, "a line of 1 columns instead of 17"},
		{"not hexadecimal", stat518 + strings.Replace(cpu0, "0000000a", "0000000x", 1), counts{}, "not a hexadecimal number"},
		{"too large", stat518 + strings.Replace(cpu0, "0000000a", "10000000a", 1), counts{}, "32 bits"},
		{"binary", probetest.Binary, counts{}, "lacks drop"},
	} {
		got, err := parseDrops(test.text)
		switch {
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("%s: %v, %v, want %v", test.name, got, err, test.want)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: %v, %v, want an error with %q", test.name, got, err, test.err)
		}
	}
}

// What packets find no room, by kernels that count other things too. The first three of case
// "no column" are what a kernel shows that has neither delete_list nor chainlength.
func TestConntrackFollowsTheCounts(t *testing.T) {
	t.Parallel()
	const old, now, none = "delete_list", "chainlength", "found"
	for _, test := range []struct {
		name                  string
		column                string
		tooLong, failed, drop int // more than in the round before
		full                  bool
		want                  verdict.Outcome
	}{
		{"nothing", now, 0, 0, 0, false, verdict.Well},
		{"no room", now, 0, 0, 1, false, verdict.Failed},
		{"counters that begin anew", now, -5, -5, -50, false, verdict.Well},
		{"lost races count in both", now, 0, 30, 30, false, verdict.Well},
		{"and on old kernels", old, 0, 30, 30, false, verdict.Well},
		{"resolved races", old, 0, 60, 0, false, verdict.Well},
		{"resolved races and drops", old, 0, 60, 40, false, verdict.Well},
		{"of a full table", old, 0, 60, 40, true, verdict.Failed},
		{"a full table that drops nothing", old, 0, 60, 0, true, verdict.Well},
		{"died before they were confirmed", now, 0, 60, 0, false, verdict.Well},
		{"and drops of a full table", now, 0, 60, 40, true, verdict.Failed},
		{"chains too long", now, 300, 300, 0, false, verdict.Failed},
		{"chains too long and races", now, 300, 330, 30, false, verdict.Failed},
		{"no column: no room", none, 0, 0, 40, false, verdict.Failed},
		{"no column: no room, and races resolved", none, 0, 60, 40, false, verdict.Failed},
		{"no column: chains too long", none, 0, 300, 0, false, verdict.Failed},
		{"no column: lost races", none, 0, 30, 30, false, verdict.Well},
	} {
		c := &Conntrack{host: withTable(t, 7, 100)}
		if test.full {
			c.host = withTable(t, 100, 100)
		}
		ask := func(tooLong, failed, drop int) verdict.Result {
			sums, err := parseDrops(fmt.Sprintf("entries %s insert_failed drop\n00040000 %08x %08x %08x\n", test.column, tooLong, failed, drop))
			if err != nil {
				t.Fatal(err)
			}
			return c.evaluate(sums)
		}
		if got := ask(900, 5000, 100); got.Outcome != verdict.Well {
			t.Errorf("%s, at first: %+v", test.name, got)
		}
		if got := ask(900+test.tooLong, 5000+test.failed, 100+test.drop); got.Outcome != test.want {
			t.Errorf("%s: %+v, want %v", test.name, got, test.want)
		}
	}
}

// withTable is a host whose connection table has so many entries of at most most, and shows
// no counts.
func withTable(t *testing.T, entries, most int) probes.Host {
	t.Helper()
	h := probes.Host{Proc: t.TempDir()}
	dir := h.Proc + "/sys/net/netfilter"
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(dir+"/nf_conntrack_count", fmt.Appendln(nil, entries), 0o600),
		os.WriteFile(dir+"/nf_conntrack_max", fmt.Appendln(nil, most), 0o600)); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestConntrackThatIsNotRead(t *testing.T) {
	t.Parallel()
	garbled := withTable(t, 7, 100)
	if err := errors.Join(os.MkdirAll(garbled.Proc+"/net/stat", 0o700), os.WriteFile(garbled.Proc+"/net/stat/nf_conntrack", []byte(stat518), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host probes.Host
		want verdict.Result
	}{
		{probes.Host{Proc: t.TempDir()}, verdict.Result{Detail: "this kernel shows no connection table"}},
		{garbled, verdict.Result{Detail: "reading conntrack: " + garbled.Proc + "/net/stat/nf_conntrack: there is no processor"}},
		{withTable(t, 7, 100), verdict.Result{Outcome: verdict.Well, Detail: "the connection table has 7 of at most 100 entries"}},
		{withTable(t, 7, 0), verdict.Result{Outcome: verdict.Well, Detail: "the connection table has 7 of at most 0 entries"}},
		{withTable(t, 100, 100), verdict.Result{Outcome: verdict.Failed, Detail: "the connection table is full (100 of 100 entries); this kernel does not show what it drops"}},
	} {
		c := &Conntrack{host: test.host}
		if got := c.Ask(t.Context(), nil, patience); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v, want %+v", got, test.want)
		}
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
