package apiserver

import "testing"

func TestSlotBeyondTheCount(t *testing.T) {
	for _, test := range []struct {
		held  string
		count int
		want  bool
	}{
		{"", 0, false}, // none is held
		{SlotPrefix + "0", 1, false},
		{SlotPrefix + "0", 0, true},
		{SlotPrefix + "2", 3, false},
		{SlotPrefix + "2", 2, true},
	} {
		if got := (&Slots{held: test.held}).IsBeyond(test.count); got != test.want {
			t.Errorf("IsBeyond(%d) with %q = %t", test.count, test.held, got)
		}
	}
}
