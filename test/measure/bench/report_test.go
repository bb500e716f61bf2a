package main

import (
	"testing"
	"time"
)

func TestMedianAndP90(t *testing.T) {
	ten := []time.Duration{1, 2, 3, 4, 5, 7, 8, 9, 10, 100}
	for _, c := range []struct {
		sorted      []time.Duration
		median, p90 time.Duration
	}{
		{ten, 6, 10},
		{ten[:1], 1, 1},
		{ten[:3], 2, 3},
	} {
		if got := median(c.sorted); got != c.median {
			t.Errorf("median of %v = %v, want %v", c.sorted, got, c.median)
		}
		if got := p90(c.sorted); got != c.p90 {
			t.Errorf("p90 of %v = %v, want %v", c.sorted, got, c.p90)
		}
	}
}
