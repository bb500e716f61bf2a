package trend

import (
	"math"
	"testing"
	"time"
)

func TestTimeText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 400 * time.Microsecond: "1 ms", 412 * time.Millisecond: "412 ms", time.Second: "1 s", 1001 * time.Millisecond: "1.1 s",
		3200 * time.Millisecond: "3.2 s", 9950 * time.Millisecond: "10 s", 41500 * time.Millisecond: "42 s", 119 * time.Second: "119 s",
		2 * time.Minute: "2 min", 61 * time.Minute: "61 min", 125 * time.Minute: "2 h 5 min",
	} {
		if got := TimeText(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestBytesText(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[float64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB",
		1024*1024 - 1: "1 MiB", 412 << 20: "412 MiB", 1023 << 20: "1023 MiB", 16750372454: "15.6 GiB",
		9.996 * (1 << 30): "10 GiB", 99.96 * (1 << 30): "100 GiB", 4402341478: "4.1 GiB", 83966610637: "78.2 GiB",
		1.234 * (1 << 40): "1.23 TiB", math.MaxUint64: "16 EiB", 1 << 80: "1048576 EiB",
	} {
		if got := BytesText(bytes); got != want {
			t.Errorf("%v bytes are %q, want %q", bytes, got, want)
		}
	}
}

func TestShareText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		part, whole float64
		want        string
	}{
		{0, 100, "0.0 %"}, {5, 100, "5.0 %"}, {4.99, 100, "4.9 %"}, {5.2, 100, "5.2 %"}, {1, 3, "33.3 %"},
		{100, 100, "100.0 %"}, {1, 0, "0.0 %"}, {150, 100, "150.0 %"},
	} {
		if got := ShareText(test.part, test.whole); got != test.want {
			t.Errorf("%v of %v is %q, want %q", test.part, test.whole, got, test.want)
		}
	}
}

func TestTimesText(t *testing.T) {
	t.Parallel()
	for want, in := range map[string][2]float64{"7.5 %": {5, 1.5}, "15 %": {10, 1.5}, "5 %": {5, 0.5}, "6.3 %": {5, 1.251}, "0.3 %": {0.2, 1.5}, "5.5 %": {5, 1.1}} {
		if got := TimesText(in[0], in[1]); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}

// What is compared never reads as equal.
func TestBytesApart(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, test := range []struct {
		a, b float64
		want string
	}{
		{12.96 * gib, 13.04 * gib, "12.96 GiB, 13.04 GiB"},
		{13 * gib, 12.8 * gib, "13 GiB, 12.8 GiB"},
		{13*gib - 1, 13 * gib, "12.999999999 GiB, 13 GiB"},
		{100, 100, "100 B, 100 B"},
	} {
		if a, b := BytesApart(test.a, test.b); a+", "+b != test.want {
			t.Errorf("%s, %s, want %s", a, b, test.want)
		}
	}
}
