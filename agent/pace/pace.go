// Package pace says how long the agent waits, so that the agents of a fleet neither
// act all at once nor ask without end.
package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// Sleep waits; false when the context ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// UpTo is a random part of a time, so that a fleet does not act all at once.
func UpTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(rand.Int64N(int64(d))) //nolint:gosec // not a secret
}

// Crowd is the time in which all agents of a fleet write once, when one API server
// writes a hundred Nodes a second. slices is the size of the fleet in hundreds.
func Crowd(slices int) time.Duration { return time.Duration(slices) * time.Second }

// Tempo is a factor of 0.9 to 1.1 for periods, so that the agents of a cluster
// that started together do not stay together.
func Tempo() float64 { return 0.9 + 0.2*rand.Float64() } //nolint:gosec // not a secret

// Jittered is a period at a Tempo of its own.
func Jittered(period time.Duration) time.Duration {
	return time.Duration(float64(period) * Tempo())
}
