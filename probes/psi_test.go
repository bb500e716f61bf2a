package probes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const somePressure = "some avg10=4.61 avg60=10.86 avg300=28.05 total=812305182\n" +
	"full avg10=0.00 avg60=0.00 avg300=0.00 total=1234567\n"

func TestParsePressure(t *testing.T) {
	t.Parallel()
	whole := pressure{812305182 * time.Microsecond, 1234567 * time.Microsecond}
	someLine, fullLine, _ := strings.Cut(somePressure, "\n")
	someLine += "\n"
	for _, test := range []struct {
		name, resource, text string
		want                 pressure
		err                  string
	}{
		{"whole", "memory", somePressure, whole, ""},
		{"the other way round", "memory", fullLine + someLine, whole, ""},
		{"a new kind of line", "memory", somePressure + "most avg10=0.00 total=1\n", whole, ""},
		{"0", "io", "some total=0\nfull total=0\n", pressure{}, ""},
		{"2^53-1", "io", "some total=9007199254740991\nfull total=0\n", pressure{9007199254740991 * time.Microsecond, 0}, ""},
		{"cpu without full", "cpu", someLine, pressure{whole.some, 0}, ""},
		{"empty", "memory", "", pressure{}, "no line some"},
		{"memory without full", "memory", someLine, pressure{}, "no line full"},
		{"no some", "memory", fullLine, pressure{}, "no line some"},
		{"no newline", "memory", strings.TrimSuffix(somePressure, "\n"), pressure{}, "cut off"},
		{"cut off within the first number", "memory", somePressure[:50], pressure{}, "cut off"},
		{"no total", "memory", "some avg10=0.00\n" + fullLine, pressure{}, "no total"},
		{"no number", "memory", "some total=\n" + fullLine, pressure{}, "no number"},
		{"negative", "memory", "some total=-1\n" + fullLine, pressure{}, "no number"},
		{"exponent", "memory", "some total=1e6\n" + fullLine, pressure{}, "no number"},
		{"fraction", "memory", "some total=1.5\n" + fullLine, pressure{}, "no number"},
		{"something behind it", "memory", "some total=1 x=2\n" + fullLine, pressure{}, "no number"},
		{"2^53", "memory", "some total=9007199254740992\n" + fullLine, pressure{}, "no number"},
		{"2^63", "memory", "some total=9223372036854775808\n" + fullLine, pressure{}, "no number"},
		{"2^64", "memory", someLine + "full total=18446744073709551616\n", pressure{}, "no number"},
		{"some twice", "memory", someLine + someLine + fullLine, pressure{}, "two lines some"},
		{"full twice", "memory", somePressure + fullLine, pressure{}, "two lines full"},
		{"binary", "memory", binary, pressure{}, "cut off"},
	} {
		got, err := parsePressure(test.text, test.resource)
		if got != test.want && test.err == "" || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %+v, %v, want %+v, %q", test.name, got, err, test.want, test.err)
		}
	}
}

func TestPressureSince(t *testing.T) {
	t.Parallel()
	earlier := pressure{time.Hour, time.Minute}
	for _, test := range []struct {
		name       string
		some, full time.Duration
		apart      time.Duration
		want       stall
		ok         bool
	}{
		{"a second", 310 * time.Millisecond, 40 * time.Millisecond, time.Second, stall{31, 4}, true},
		{"half a second", 310 * time.Millisecond, 40 * time.Millisecond, 500 * time.Millisecond, stall{62, 8}, true},
		{"nothing", 0, 0, time.Second, stall{}, true},
		{"never more than all", 2 * time.Second, 1100 * time.Millisecond, time.Second, stall{100, 100}, true},
		{"the longest gap", 15 * time.Second, 3 * time.Second, 30 * time.Second, stall{50, 10}, true},
		{"too long a gap", 15 * time.Second, 3 * time.Second, 30*time.Second + 1, stall{}, false},
		{"the shortest time", 50 * time.Millisecond, 0, 50 * time.Millisecond, stall{100, 0}, true},
		{"too short a time", 1, 0, 49 * time.Millisecond, stall{}, false},
		{"no time", 0, 0, 0, stall{}, false},
		{"time goes back", 0, 0, -time.Second, stall{}, false},
		{"some goes back", -1, 1, time.Second, stall{}, false},
		{"full goes back", 1, -1, time.Second, stall{}, false},
	} {
		got, ok := pressure{earlier.some + test.some, earlier.full + test.full}.since(earlier, test.apart)
		if got != test.want || ok != test.ok {
			t.Errorf("%s: %+v, %t, want %+v, %t", test.name, got, ok, test.want, test.ok)
		}
	}
}

// damageOptional is the damage that a file that need not be there can take.
func damageOptional(t *testing.T, path, thing string, garbled map[string]string) {
	t.Helper()
	h := copyOfHealthy(t)
	if err := os.MkdirAll(filepath.Join(h.Root, path), 0o700); err != nil {
		t.Fatal(err)
	}
	check(t, observe(t, NewMemory(h, allMemory)), Unknown, thing+"Unreadable", filepath.Base(path))
	remove(t, h, path)
	check(t, observe(t, NewMemory(h, allMemory)), OK, "MemorySufficient", "")
	for name, text := range garbled {
		write(t, h, path, text)
		o := observe(t, NewMemory(h, allMemory))
		if o.Level != Unknown || o.Reason != thing+"Garbled" || !strings.Contains(o.Message, filepath.Base(path)) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestPressureDamage(t *testing.T) {
	t.Parallel()
	damageOptional(t, "proc/pressure/memory", "Pressure", map[string]string{
		"empty": "", "binary": binary, "no full": "some total=1\n", "cut off": somePressure[:60],
	})
}

func FuzzParsePressure(f *testing.F) {
	f.Add(somePressure, "memory")
	f.Add("some total=1\n", "cpu")
	f.Add(binary, "io")
	f.Fuzz(func(t *testing.T, text, resource string) {
		p, err := parsePressure(text, resource)
		if err == nil && (p.some < 0 || p.full < 0 || !strings.HasSuffix(text, "\n") || !strings.Contains(text, " total=")) {
			t.Errorf("%q is %+v", text, p)
		}
	})
}

func BenchmarkReadPressure(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		readPressure(Host{Proc: "/proc"}, "memory") //nolint:errcheck // measured
	}
}
