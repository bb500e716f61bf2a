package slots

import (
	"context"
	"log/slog"
	"time"

	"github.com/taintlet/taintlet/taints"
)

// Rehearsed are the eviction slots of a dry run. A slot that the API server would give counts as
// held until it is given back, although no other Node sees that.
type Rehearsed struct {
	Client // of a client whose writes are dry runs; nil: a fleet of one Node, which always has a slot
	Log    *slog.Logger
}

// Acquire asks for a slot, which is not kept.
func (s Rehearsed) Acquire(ctx context.Context, count int, cooldown time.Duration, evicts func(taints.Pair) bool) (held bool, err error) {
	held = true
	if s.Client != nil {
		held, err = s.Client.Acquire(ctx, count, cooldown, evicts)
	}
	if held {
		s.Log.Info("dry run: would take an eviction slot")
	}
	return held, err
}

// IsBeyond asks the client.
func (s Rehearsed) IsBeyond(count int) bool { return s.Client != nil && s.Client.IsBeyond(count) }

// Renew keeps the slot.
func (Rehearsed) Renew(context.Context) (bool, error) { return true, nil }

// Release gives the slot back.
func (s Rehearsed) Release(context.Context) error {
	s.Log.Info("dry run: would give the eviction slot back")
	return nil
}
