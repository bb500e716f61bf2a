package slots

import (
	"context"
	"log/slog"
	"time"

	"github.com/taintlet/taintlet/taints"
)

// Offline is a fleet of one Node, for --dry-run=client.
type Offline struct{ Log *slog.Logger }

// Acquire logs, and gets a slot.
func (s Offline) Acquire(context.Context, int, time.Duration, func(taints.Pair) bool) (bool, error) {
	s.Log.Info("dry run: would take an eviction slot")
	return true, nil
}

// Renew keeps the slot.
func (Offline) Renew(context.Context) (bool, error) { return true, nil }

// Release gives the slot back.
func (Offline) Release(context.Context) error { return nil }

// IsBeyond is false: the fleet of one Node always has a slot.
func (Offline) IsBeyond(int) bool { return false }

// Rehearsed are the eviction slots of --dry-run=server. A slot that the API
// server would give counts as held until it is given back, although no other Node
// sees that.
type Rehearsed struct {
	Client // of a client whose writes are dry runs
	Log    *slog.Logger
}

// Acquire asks for a slot, which is not kept.
func (s Rehearsed) Acquire(ctx context.Context, count int, cooldown time.Duration, evicts func(taints.Pair) bool) (bool, error) {
	held, err := s.Client.Acquire(ctx, count, cooldown, evicts)
	if held {
		s.Log.Info("dry run: would take an eviction slot")
	}
	return held, err
}

// Renew keeps the slot.
func (Rehearsed) Renew(context.Context) (bool, error) { return true, nil }

// Release gives the slot back.
func (s Rehearsed) Release(context.Context) error {
	s.Log.Info("dry run: would give the eviction slot back")
	return nil
}
