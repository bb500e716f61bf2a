package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the short form prints into testdata/short.txt")

// The short form prints what is committed, and every scenario is within its bounds.
func TestShort(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	report(&printed, scenarios(true), 1, "", false)
	for line := range strings.Lines(printed.String()) {
		if strings.HasSuffix(line, "NO\n") {
			t.Errorf("out of bounds: %s", line)
		}
	}
	const file = "testdata/short.txt"
	if *update {
		if err := os.WriteFile(file, printed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if printed.String() != string(want) {
		t.Errorf("the matrix is not that of %s; if it is better: go test ./test/simulate/network -update and make simulate-network. It is:\n%s", file, &printed)
	}
}

// The committed matrix of the long form has every scenario, in order and within
// its bounds.
func TestCommitted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("confusion.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[2:]
	all := scenarios(false)
	if len(lines) != len(all) {
		t.Fatalf("%d scenarios, confusion.txt has %d; make simulate-network", len(all), len(lines))
	}
	for i, s := range all {
		if !strings.HasPrefix(lines[i], s.name+" ") || !strings.HasSuffix(lines[i], " yes") {
			t.Errorf("%s: confusion.txt has %q; make simulate-network", s.name, lines[i])
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	s := scenario{least: 99, most: 0.1}
	for _, test := range []struct {
		m     matrix
		holds bool
	}{
		{matrix{99, 1, 1, 999, 0, 0}, true},
		{matrix{98, 2, 0, 999, 0, 0}, false},
		{matrix{99, 1, 2, 998, 0, 0}, false},
		{matrix{0, 0, 0, 1000, 0, 0}, true},
	} {
		if s.holds(test.m) != test.holds {
			t.Errorf("%+v: %t", test.m, !test.holds)
		}
	}
}

// Peers are spread over zones, and a node is not its own.
func TestPeersAreSpread(t *testing.T) {
	t.Parallel()
	for _, n := range newFleet(60, 6, 1).nodes {
		zones, known := map[int]int{}, map[int]bool{}
		for _, p := range n.peers {
			zones[p%6]++
			known[p] = true
		}
		if len(known) != K || len(zones) != 6 || n.name == "node-0" && known[0] {
			t.Fatalf("%s: peers %v", n.name, n.peers)
		}
	}
	for _, n := range newFleet(3, 1, 1).nodes {
		if len(n.peers) != 2 {
			t.Errorf("%s of 3: peers %v", n.name, n.peers)
		}
	}
}

// What was shown at a time is read, not what was shown later.
func TestLatest(t *testing.T) {
	t.Parallel()
	var all []shown
	for i := range 9 {
		all = push(all, shown{at: time.Duration(i) * time.Second, suspects: i%2 == 1})
	}
	if got := latest(all, 7500*time.Millisecond); got.at != 7*time.Second || !got.suspects {
		t.Errorf("%+v", got)
	}
	if got := latest(all, never); got.at != 8*time.Second {
		t.Errorf("%+v", got)
	}
	if got := latest(nil, never); got.suspects {
		t.Errorf("%+v", got)
	}
}
