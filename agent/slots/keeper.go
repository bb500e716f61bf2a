// Package slots keeps one of the eviction slots of the fleet for this Node: Leases that
// bound how many Nodes evict at the same time.
package slots

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/taints/pace"
)

// Client holds at most one of the fleet's eviction slots (*apiserver.Slots).
type Client interface {
	// Acquire tries to get one of count slots; a slot that is held already
	// counts. evicts reports whether a pair on another Node may be one of ours
	// that evicts. With an error it is not known whether there is a slot.
	Acquire(ctx context.Context, count int, cooldown time.Duration, evicts func(taints.Pair) bool) (held bool, err error)
	// Renew shows other agents that the holder is alive. Not held means that the slot was lost.
	Renew(ctx context.Context) (held bool, err error)
	// Release gives the slot back.
	Release(ctx context.Context) error
	// IsBeyond reports whether the slot that is held is none of the first count.
	IsBeyond(count int) bool
}

const (
	// tryEvery is how soon a slot is asked for again that was not got. The pauses
	// double, up to tryWithin: all Nodes of a fleet may be waiting.
	tryEvery  = 10 * time.Second
	tryWithin = time.Minute
	// renewsPerCooldown is how often a slot is renewed in one cooldown, the time
	// after which others may take it.
	renewsPerCooldown = 5
)

// level is what the decider requests, with the bounds that are in force. It says all that
// there is to know, so that it may be repeated, and replaced before it was read.
type level struct {
	request decide.SlotRequest
	cfg     *config.Config
	// usedUntil is when this Node was last known to carry NoExecute taints, or to be
	// about to.
	usedUntil time.Time
}

// isWanted reports whether a slot is requested.
func (l level) isWanted() bool { return l.request >= decide.SlotRequested }

// Keeper holds and renews the eviction slot of this Node, in one goroutine.
type Keeper struct {
	client Client
	log    *slog.Logger
	now    func() time.Time
	// Answers have the state of the slot, when it changes.
	Answers chan decide.Slot

	mu     sync.Mutex
	newest level
	woken  chan struct{} // has room for one: newest was replaced by another request

	// slot is what the API server said most recently: unknown while none is wanted.
	slot decide.Slot
	// heldSince is since when the slot is held.
	heldSince time.Time
	// pause is how long it was waited before the newest try to get a slot; 0: it was
	// the first one.
	pause time.Duration
	// answered is the newest of the Answers.
	answered decide.Slot
	// confirmed is until when no other Node can have taken the slot: others wait
	// for the whole cooldown since it was last renewed. Nanoseconds since the
	// epoch by the clock of now, read by the writer.
	confirmed atomic.Int64
}

// NewKeeper returns a Keeper that holds no slot. now counts suspended time, and is never
// stepped.
func NewKeeper(client Client, log *slog.Logger, now func() time.Time) *Keeper {
	return &Keeper{client: client, log: log, now: now, woken: make(chan struct{}, 1), Answers: make(chan decide.Slot)}
}

// Request passes on the request of the decider, and the configuration in force. It does not wait,
// and may be called again with the same request.
func (k *Keeper) Request(request decide.SlotRequest, cfg *config.Config) {
	if request == decide.SlotUndecided {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.newest
	k.newest.request, k.newest.cfg = request, cfg
	if before.request == decide.SlotInUse {
		k.newest.usedUntil = k.now()
	}
	if before.request == request && before.cfg == cfg {
		return
	}
	select {
	case k.woken <- struct{}{}:
	default: // it will read this one
	}
}

// read returns what is requested now.
func (k *Keeper) read() level {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.newest
}

// MayEvictUntil returns the time until which a NoExecute taint may be added to the Node.
func (k *Keeper) MayEvictUntil() time.Time { return time.Unix(0, k.confirmed.Load()) }

// Run asks for, keeps and releases a slot until the context ends. A slot that
// is in use stays held then: the taint stays too.
func (k *Keeper) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.woken:
			k.pause = 0
		case <-timer.C:
		}
		now := k.now() // before it is read: what is in use from here on counts as use of a slot that is got now
		wanted := k.read()
		timer.Reset(k.reconcile(ctx, wanted, now))
		if answer := k.answer(wanted); answer != k.answered {
			k.answered = answer
			select {
			case <-ctx.Done():
				return ctx.Err()
			case k.Answers <- answer:
			}
		}
	}
}

// reconcile brings what is held nearer to what is wanted, and returns when to do so
// again.
func (k *Keeper) reconcile(ctx context.Context, wanted level, now time.Time) time.Duration {
	if wanted.cfg == nil {
		return untilRequested
	}
	eviction := wanted.cfg.Eviction
	cooldown := eviction.Cooldown.Duration
	ctx, cancel := context.WithTimeout(ctx, tryEvery)
	defer cancel()
	if k.slot == decide.SlotHeld && k.client.IsBeyond(eviction.Slots) {
		// Its Lease and the permission for it may be gone with the old number.
		k.log.Warn("eviction slot given up: the configuration has fewer slots now", "slots", eviction.Slots)
		k.lose(decide.SlotNone)
	}
	cools := k.coolsFor(wanted, now)
	switch isHeld := k.slot == decide.SlotHeld; {
	case !wanted.isWanted() && !isHeld:
		k.lose(decide.SlotUnknown)
		return untilRequested
	case !isHeld:
		return k.acquire(ctx, wanted, now)
	case wanted.isWanted():
		k.renew(ctx, cooldown, now)
		return cooldown / renewsPerCooldown
	case cools > 0:
		k.renew(ctx, cooldown, now)
		return min(cools, cooldown/renewsPerCooldown)
	}
	k.release(ctx)
	return tryEvery
}

// coolsFor returns how long a slot is kept that is no longer needed: until the cooldown after its
// last use is over. A slot that was never used is not kept.
func (k *Keeper) coolsFor(wanted level, now time.Time) time.Duration {
	if wanted.usedUntil.Before(k.heldSince) {
		return 0
	}
	return wanted.usedUntil.Add(wanted.cfg.Eviction.Cooldown.Duration).Sub(now)
}

// lose notes that no slot is held, and what is known of another.
func (k *Keeper) lose(slot decide.Slot) {
	k.slot, k.heldSince = slot, time.Time{}
	k.confirmed.Store(0)
}

// longer returns the pause after that before, so that each of the slots is read once
// within tryWithin: the pause is shorter where more slots are to be read in turn.
func longer(pause time.Duration, slots int) time.Duration {
	most := tryWithin * apiserver.SlotsAtATime / time.Duration(max(slots, apiserver.SlotsAtATime))
	return max(tryEvery, min(2*pause, most))
}

// untilRequested is as good as never: a request wakes the keeper.
const untilRequested = time.Hour

// acquire tries to get a slot, and returns when to try again, or to renew it.
func (k *Keeper) acquire(ctx context.Context, wanted level, now time.Time) time.Duration {
	eviction := wanted.cfg.Eviction
	cooldown := eviction.Cooldown.Duration
	held, err := k.client.Acquire(ctx, eviction.Slots, cooldown, wanted.cfg.Policy().Evicts)
	switch {
	case err != nil:
		k.log.Warn("cannot ask for an eviction slot; trying again, nothing new is evicted until then", "error", err)
	case held:
		k.log.Info("eviction slot taken")
		k.confirm(now, cooldown)
		k.pause = 0
		return cooldown / renewsPerCooldown
	default:
		k.lose(decide.SlotNone)
	}
	k.pause = longer(k.pause, eviction.Slots)
	return pace.Jittered(k.pause)
}

func (k *Keeper) renew(ctx context.Context, cooldown time.Duration, now time.Time) {
	held, err := k.client.Renew(ctx)
	switch {
	case err != nil:
		k.log.Warn("cannot renew the eviction slot; trying again, nothing new is evicted until then", "error", err)
	case held:
		k.confirm(now, cooldown)
	default:
		k.log.Warn("eviction slot lost; stepping down")
		k.lose(decide.SlotNone)
	}
}

func (k *Keeper) release(ctx context.Context) {
	k.confirmed.Store(0) // from here on another Node may have it
	if err := k.client.Release(ctx); err != nil {
		k.log.Warn("cannot release the eviction slot; trying again", "error", err)
		return
	}
	k.log.Info("eviction slot released")
	k.lose(decide.SlotUnknown)
}

// confirm notes that the slot was ours at that time. Half of the cooldown is
// left to others' clocks and to requests that are slow to arrive.
func (k *Keeper) confirm(at time.Time, cooldown time.Duration) {
	if k.slot != decide.SlotHeld {
		k.slot, k.heldSince = decide.SlotHeld, at
	}
	k.confirmed.Store(at.Add(cooldown / 2).UnixNano())
}

// answer is what is known of the slot that is wanted.
func (k *Keeper) answer(wanted level) decide.Slot {
	switch {
	case !wanted.isWanted():
		return decide.SlotUnknown // an answer to an earlier request is none now
	case k.slot == decide.SlotHeld && !k.now().Before(k.MayEvictUntil()):
		return decide.SlotUnknown
	}
	return k.slot
}
