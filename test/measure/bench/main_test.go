package main

import "testing"

func TestParse(t *testing.T) {
	o, err := parse([]string{"--parts", "footprint,kubelet", "--runs", "3"})
	if err != nil || len(o.parts) != 2 || o.runs != 3 {
		t.Errorf("%v %+v", err, o)
	}
	if o, err := parse([]string{"--short"}); err != nil || o.runs != 1 || len(o.parts) != len(allParts()) {
		t.Errorf("%v %+v", err, o)
	}
	for _, bad := range [][]string{{"--runs", "0"}, {"--only", "cpu"}, {"--parts", "all"}, {"--measured", "0s"}, {"more"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
