package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// SlotClient holds at most one of the fleet's eviction slots (*taints.Slots).
type SlotClient interface {
	// Acquire tries to get one of count slots; one that is held already counts.
	// evicts reports whether a pair on another Node may be one of ours that
	// evicts. With an error it is not known whether there is a slot.
	Acquire(ctx context.Context, count int, rest time.Duration, evicts func(taints.Pair) bool) (held bool, err error)
	// Renew shows others that the holder is alive. Not held means lost.
	Renew(ctx context.Context) (held bool, err error)
	// Release lets go of the slot.
	Release(ctx context.Context) error
	// IsBeyond reports whether the slot that is held is none of the first count.
	IsBeyond(count int) bool
}

const (
	// slotEvery is how often a slot that is wanted is asked for.
	slotEvery = 10 * time.Second
	// renewsPerRest is how often a slot is renewed while its Lease need not have
	// moved.
	renewsPerRest = 5
)

// slotWish is what the decider wishes, and the bounds that are in force.
type slotWish struct {
	wish decide.SlotWish
	cfg  *config.Config
	// wasUsed: an earlier wish that was not taken in had the slot in use.
	wasUsed bool
}

// slotKeeper is the one goroutine that deals with slots.
type slotKeeper struct {
	client  SlotClient
	log     *slog.Logger
	metrics *metrics
	now     func() time.Time // counts suspended time, and is never stepped

	wish slotWish
	// held is the last answer, if one is known.
	held, known bool
	// used: the Node carried a NoExecute taint since the slot was got; idleSince
	// is when it was done with that.
	used      bool
	idleSince time.Time
	told      decide.Slot
	// confirmed is until when no other Node can have taken the slot: others wait
	// for the whole rest since it was last renewed. Nanoseconds since the epoch
	// by the clock of now, read by the writer.
	confirmed atomic.Int64
}

// mayEvictUntil is until when a NoExecute taint may be added to the Node.
func (k *slotKeeper) mayEvictUntil() time.Time { return time.Unix(0, k.confirmed.Load()) }

// run keeps, asks for and lets go of a slot until the context ends. A slot that
// is in use stays held then: the taint stays too.
func (k *slotKeeper) run(ctx context.Context, wishes <-chan slotWish, out chan<- decide.Slot) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case wish := <-wishes:
			if !k.take(wish) {
				continue
			}
		case <-timer.C:
		}
		timer.Reset(k.look(ctx))
		if now := k.status(); now != k.told {
			k.told = now
			k.metrics.slot(now)
			select {
			case <-ctx.Done():
				return
			case out <- now:
			}
		}
	}
}

// take notes a wish and reports whether it is a new one.
func (k *slotKeeper) take(wish slotWish) bool {
	if wish == k.wish {
		return false
	}
	if (k.wish.wish == decide.SlotInUse || wish.wasUsed) && wish.wish != decide.SlotInUse {
		k.idleSince = k.now()
	}
	k.used = k.used || wish.wasUsed || wish.wish == decide.SlotInUse
	k.known = k.known && k.wish.wish >= decide.SlotWanted || k.held
	k.wish = slotWish{wish: wish.wish, cfg: wish.cfg}
	if wish.wish == decide.SlotLeft { // the other agent holds it in the same Node's name
		k.held, k.known, k.used = false, false, false
		k.confirmed.Store(0)
	}
	return true
}

// look does what the wish asks for and returns when to look again.
func (k *slotKeeper) look(ctx context.Context) time.Duration {
	if k.wish.cfg == nil {
		return time.Hour // until there is a wish
	}
	rest := k.wish.cfg.Eviction.Rest.Duration
	ctx, cancel := context.WithTimeout(ctx, slotEvery)
	defer cancel()
	if k.held && k.client.IsBeyond(k.wish.cfg.Eviction.Slots) {
		// Its Lease and the permission for it may be gone with the old number.
		k.log.Warn("eviction slot given up: the configuration has fewer slots now", "slots", k.wish.cfg.Eviction.Slots)
		k.settle(false, time.Time{}, 0)
	}
	switch {
	case k.wish.wish == decide.SlotNotNeeded && k.held:
		if wait := rest - k.now().Sub(k.idleSince); k.used && wait > 0 {
			k.renew(ctx, rest)
			return min(wait, rest/renewsPerRest)
		}
		k.release(ctx)
		return slotEvery
	case k.wish.wish < decide.SlotWanted:
		return time.Hour // until there is a wish
	case k.held:
		k.renew(ctx, rest)
		return rest / renewsPerRest
	default:
		k.acquire(ctx, rest)
		if k.held {
			return rest / renewsPerRest
		}
		return jittered(slotEvery)
	}
}

func (k *slotKeeper) acquire(ctx context.Context, rest time.Duration) {
	begin := k.now()
	held, err := k.client.Acquire(ctx, k.wish.cfg.Eviction.Slots, rest, k.wish.cfg.Evicts)
	if err != nil {
		k.log.Warn("cannot ask for an eviction slot; trying again, nothing new is evicted meanwhile", "error", err)
		return
	}
	k.settle(held, begin, rest)
	if held {
		k.log.Info("eviction slot taken")
	}
}

func (k *slotKeeper) renew(ctx context.Context, rest time.Duration) {
	begin := k.now()
	held, err := k.client.Renew(ctx)
	if err != nil {
		k.log.Warn("cannot renew the eviction slot; trying again, nothing new is evicted meanwhile", "error", err)
		return
	}
	k.settle(held, begin, rest)
	if !held {
		k.log.Warn("eviction slot lost; stepping down")
	}
}

// settle notes what became of the slot. Half of the rest is left to others'
// clocks and to requests that are slow to arrive.
func (k *slotKeeper) settle(held bool, begin time.Time, rest time.Duration) {
	k.held, k.known = held, true
	if !held {
		k.used = k.wish.wish == decide.SlotInUse // until it has stepped down
		k.confirmed.Store(0)
		return
	}
	k.confirmed.Store(begin.Add(rest / 2).UnixNano())
}

func (k *slotKeeper) release(ctx context.Context) {
	k.confirmed.Store(0) // from here on another Node may have it
	if err := k.client.Release(ctx); err != nil {
		k.log.Warn("cannot let go of the eviction slot; trying again", "error", err)
		return
	}
	k.log.Info("eviction slot let go of")
	k.settle(false, time.Time{}, 0)
}

// status is what is known of the slot now.
func (k *slotKeeper) status() decide.Slot {
	switch {
	case k.wish.wish < decide.SlotWanted:
		return decide.SlotUnknown // an answer of the last time is none now
	case k.held && k.now().Before(k.mayEvictUntil()):
		return decide.SlotHeld
	case k.held || !k.known:
		return decide.SlotUnknown
	}
	return decide.SlotNone
}
