package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// matrix is who was accused, at any time, of the broken and of the healthy.
type matrix struct {
	brokenAccused, brokenNot   int
	healthyAccused, healthyNot int
	median, slowest            time.Duration // from the start of the fault, of the broken
}

// whom tells why healthy nodes are accused.
func whom(out io.Writer, f *fleet) {
	for _, n := range f.nodes {
		if !n.broken && n.accusedAt != never {
			fmt.Fprintf(out, "  %s after %s: %s\n", n.name, n.accusedAt-start, n.because)
		}
	}
}

// play runs a scenario.
func (s *scenario) play(seed uint64) (*fleet, matrix) {
	f := newFleet(s.size, s.zones, seed)
	s.happens(f)
	f.run(start + s.lasts)
	var m matrix
	var took []time.Duration
	for _, n := range f.nodes {
		isAccused := n.accusedAt != never
		switch {
		case n.broken && isAccused:
			m.brokenAccused++
			took = append(took, n.accusedAt-n.beganAt())
		case n.broken:
			m.brokenNot++
		case isAccused:
			m.healthyAccused++
		default:
			m.healthyNot++
		}
	}
	if slices.Sort(took); len(took) > 0 {
		m.median, m.slowest = took[len(took)/2], took[len(took)-1]
	}
	return f, m
}

// beganAt is when the node's own fault began.
func (n *node) beganAt() time.Duration {
	for _, s := range []span{n.cut, n.lossy, n.vxlan, n.dns, n.local, n.hole} {
		if s.to != 0 {
			return s.from
		}
	}
	return start
}

// holds reports whether the matrix is within the scenario's bounds.
func (s *scenario) holds(m matrix) bool {
	return percent(m.brokenAccused, m.brokenNot, 100) >= s.least && percent(m.healthyAccused, m.healthyNot, 0) <= s.most
}

// percent is the share of a in a and b; none when both are 0.
func percent(a, b int, none float64) float64 {
	if a+b == 0 {
		return none
	}
	return 100 * float64(a) / float64(a+b)
}

// report prints the confusion matrix of each scenario.
func report(out io.Writer, all []scenario, seed uint64, only string, why bool) {
	fmt.Fprintf(out, "%-66s %5s %5s | %8s %8s | %8s %8s | %7s %7s | %s\n", "", "", "", "broken", "", "healthy", "", "", "", "")
	fmt.Fprintf(out, "%-66s %5s %5s | %8s %8s | %8s %8s | %7s %7s | %s\n",
		"scenario", "nodes", "zones", "accused", "not", "accused", "not", "median", "last", "within bounds")
	for _, s := range all {
		if !strings.Contains(s.name, only) {
			continue
		}
		f, m := s.play(seed)
		verdict := "yes"
		if !s.holds(m) {
			verdict = "NO"
		}
		fmt.Fprintf(out, "%-66s %5d %5d | %8d %8d | %8d %8d | %7s %7s | %s\n", s.name, s.size, s.zones,
			m.brokenAccused, m.brokenNot, m.healthyAccused, m.healthyNot, seconds(m.median), seconds(m.slowest), verdict)
		if why {
			whom(out, f)
		}
	}
}

// seconds is a duration as a cell has it.
func seconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
