package pressure

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/probetest"
)

const somePressure = "some avg10=4.61 avg60=10.86 avg300=28.05 total=812305182\n" +
	"full avg10=0.00 avg60=0.00 avg300=0.00 total=1234567\n"

func TestParsePressure(t *testing.T) {
	t.Parallel()
	whole := Totals{812305182 * time.Microsecond, 1234567 * time.Microsecond}
	someLine, fullLine, _ := strings.Cut(somePressure, "\n")
	someLine += "\n"
	for _, test := range []struct {
		name, text string
		want       Totals
		err        string
	}{
		{"whole", somePressure, whole, ""},
		{"the other way round", fullLine + someLine, whole, ""},
		{"a new kind of line", somePressure + "most avg10=0.00 total=1\n", whole, ""},
		{"0", "some total=0\nfull total=0\n", Totals{}, ""},
		{"2^53-1", "some total=9007199254740991\nfull total=0\n", Totals{9007199254740991 * time.Microsecond, 0}, ""},
		{"empty", "", Totals{}, "0 lines some"},
		{"no full", someLine, Totals{}, "0 lines full"},
		{"no some", fullLine, Totals{}, "0 lines some"},
		{"no newline", strings.TrimSuffix(somePressure, "\n"), Totals{}, "cut off"},
		{"cut off within the first number", somePressure[:50], Totals{}, "cut off"},
		{"no total", "some avg10=0.00\n" + fullLine, Totals{}, "no total"},
		{"no number", "some total=\n" + fullLine, Totals{}, "no number"},
		{"negative", "some total=-1\n" + fullLine, Totals{}, "no number"},
		{"exponent", "some total=1e6\n" + fullLine, Totals{}, "no number"},
		{"fraction", "some total=1.5\n" + fullLine, Totals{}, "no number"},
		{"something behind it", "some total=1 x=2\n" + fullLine, Totals{}, "no number"},
		{"2^53", "some total=9007199254740992\n" + fullLine, Totals{}, "no number"},
		{"2^63", "some total=9223372036854775808\n" + fullLine, Totals{}, "no number"},
		{"2^64", someLine + "full total=18446744073709551616\n", Totals{}, "no number"},
		{"some twice", someLine + someLine + fullLine, Totals{}, "2 lines some"},
		{"full twice", somePressure + fullLine, Totals{}, "2 lines full"},
		{"binary", probetest.Binary, Totals{}, "cut off"},
	} {
		got, err := parse(test.text)
		if got != test.want && test.err == "" || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %+v, %v, want %+v, %q", test.name, got, err, test.want, test.err)
		}
	}
}

func TestPressureSince(t *testing.T) {
	t.Parallel()
	earlier := Totals{time.Hour, time.Minute}
	for _, test := range []struct {
		name       string
		some, full time.Duration
		apart      time.Duration
		want       Stall
		ok         bool
	}{
		{"a second", 310 * time.Millisecond, 40 * time.Millisecond, time.Second, Stall{31, 4}, true},
		{"half a second", 310 * time.Millisecond, 40 * time.Millisecond, 500 * time.Millisecond, Stall{62, 8}, true},
		{"nothing", 0, 0, time.Second, Stall{}, true},
		{"never more than all", 2 * time.Second, 1100 * time.Millisecond, time.Second, Stall{100, 100}, true},
		{"the longest gap", 15 * time.Second, 3 * time.Second, 30 * time.Second, Stall{50, 10}, true},
		{"too long a gap", 15 * time.Second, 3 * time.Second, 30*time.Second + 1, Stall{}, false},
		{"the shortest time", 50 * time.Millisecond, 0, 50 * time.Millisecond, Stall{100, 0}, true},
		{"too short a time", 1, 0, 49 * time.Millisecond, Stall{}, false},
		{"no time", 0, 0, 0, Stall{}, false},
		{"time goes back", 0, 0, -time.Second, Stall{}, false},
		{"some goes back", -1, 1, time.Second, Stall{}, false},
		{"full goes back", 1, -1, time.Second, Stall{}, false},
	} {
		got, ok := Totals{earlier.Some + test.some, earlier.Full + test.full}.Since(earlier, test.apart)
		if got != test.want || ok != test.ok {
			t.Errorf("%s: %+v, %t, want %+v, %t", test.name, got, ok, test.want, test.ok)
		}
	}
}

func FuzzParsePressure(f *testing.F) {
	f.Add(somePressure)
	f.Add("some total=1\n")
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(text)
		if err == nil && (p.Some < 0 || p.Full < 0 || !strings.HasSuffix(text, "\n") || !strings.Contains(text, " total=")) {
			t.Errorf("%q is %+v", text, p)
		}
	})
}
