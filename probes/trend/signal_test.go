package trend

import "testing"

func TestExcess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                       string
		percent, threshold, factor float64
		want                       Signal
	}{
		{"nothing", 0, 15, 1.5, Signal{0, false, false}},
		{"below the clear threshold", 9.9, 15, 1.5, Signal{33, false, false}},
		{"at the clear threshold", 10, 15, 1.5, Signal{33, false, true}},
		{"just below", 14.999, 15, 1.5, Signal{49, false, true}},
		{"at the threshold", 15, 15, 1.5, Signal{50, true, true}},
		{"halfway to all", 57.5, 15, 1.5, Signal{75, true, true}},
		{"all", 100, 15, 1.5, Signal{100, true, true}},
		{"a factor below 1 counts as 1", 14.9, 15, 0.5, Signal{49, false, false}},
		{"all is the threshold", 100, 100, 1.5, Signal{100, true, true}},
		{"almost all, all is the threshold", 99.9, 100, 1.5, Signal{49, false, true}},
		{"no threshold", 100, 0, 1.5, Signal{}},
	} {
		if got := Excess(test.percent, test.threshold, test.factor); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestBoth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ a, b, want Signal }{
		{Signal{100, true, true}, Signal{49, false, true}, Signal{49, false, true}},
		{Signal{100, true, true}, Signal{0, false, false}, Signal{0, false, false}},
		{Signal{60, true, true}, Signal{70, true, true}, Signal{60, true, true}},
	} {
		if got := Both(test.a, test.b); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, got)
		}
		if got := Both(test.b, test.a); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.b, test.a, got)
		}
	}
}
