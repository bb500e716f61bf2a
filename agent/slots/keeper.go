// Package slots keeps one of the eviction slots of the fleet for this Node: Leases that
// bound how many Nodes evict at the same time.
package slots

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// Client holds at most one of the fleet's eviction slots (*apiserver.Slots).
type Client interface {
	// Acquire tries to get one of count slots; a slot that is held already
	// counts. evicts reports whether a pair on another Node may be one of ours
	// that evicts. With an error it is not known whether there is a slot.
	Acquire(ctx context.Context, count int, cooldown time.Duration, evicts func(taints.Pair) bool) (held bool, err error)
	// Renew shows others that the holder is alive. Not held means lost.
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

// request is what the decider requests, and the bounds that are in force.
type request struct {
	request decide.SlotRequest
	cfg     *config.Config
	// wasInUse: a request that this one replaced unread had the slot in use.
	wasInUse bool
}

// Keeper is the one goroutine that deals with slots.
type Keeper struct {
	client Client
	log    *slog.Logger
	now    func() time.Time
	// Answers say what is known of the slot, when that changes.
	Answers chan decide.Slot
	newest  chan request // has room for one
	last    request      // that was put there

	state   state
	request request // the newest one taken; no configuration: none so far
	// coolingSince is when the NoExecute taints were gone.
	coolingSince time.Time
	// pause is how long it was waited before the newest try to get a slot; 0: it was
	// the first one.
	pause time.Duration
	told  decide.Slot
	// confirmed is until when no other Node can have taken the slot: others wait
	// for the whole cooldown since it was last renewed. Nanoseconds since the
	// epoch by the clock of now, read by the writer.
	confirmed atomic.Int64
}

// NewKeeper returns a Keeper that holds no slot. now counts suspended time, and is never
// stepped.
func NewKeeper(client Client, log *slog.Logger, now func() time.Time) *Keeper {
	return &Keeper{client: client, log: log, now: now, newest: make(chan request, 1), Answers: make(chan decide.Slot)}
}

// Request passes on what the decider requests, and the configuration in force. It does
// not wait. One goroutine calls it.
func (k *Keeper) Request(wanted decide.SlotRequest, cfg *config.Config) {
	next := request{request: wanted, cfg: cfg}
	if wanted == decide.SlotUndecided || next == k.last {
		return
	}
	k.last = next
	select {
	case unread := <-k.newest:
		next.wasInUse = unread.wasInUse || unread.request == decide.SlotInUse
	default:
	}
	k.newest <- next
}

// MayEvictUntil is until when a NoExecute taint may be added to the Node.
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
		case r := <-k.newest:
			k.take(r)
		case <-timer.C:
		}
		timer.Reset(k.act(ctx))
		if now := k.status(); now != k.told {
			k.told = now
			select {
			case <-ctx.Done():
				return ctx.Err()
			case k.Answers <- now:
			}
		}
	}
}

// take takes in a request.
func (k *Keeper) take(r request) {
	if r.wasInUse {
		k.move(inUse)
	}
	k.request, k.pause = r, 0
	k.move(eventOf(r.request))
}

// move goes to the state that an event leads to.
func (k *Keeper) move(e event) {
	before := k.state
	k.state = before.on(e)
	if before == used && k.state == cooling {
		k.coolingSince = k.now()
	}
	if !k.state.isHeld() {
		k.confirmed.Store(0)
	}
}

// act does what the state asks for and returns when to act again.
func (k *Keeper) act(ctx context.Context) time.Duration {
	if k.request.cfg == nil {
		return untilRequested
	}
	eviction := k.request.cfg.Eviction
	cooldown := eviction.Cooldown.Duration
	ctx, cancel := context.WithTimeout(ctx, tryEvery)
	defer cancel()
	if k.state.isHeld() && k.client.IsBeyond(eviction.Slots) {
		// Its Lease and the permission for it may be gone with the old number.
		k.log.Warn("eviction slot given up: the configuration has fewer slots now", "slots", eviction.Slots)
		k.settle(denied)
	}
	left := cooldown - k.now().Sub(k.coolingSince)
	if k.state == cooling && k.request.request == decide.SlotNotNeeded && left <= 0 {
		k.move(cooled)
	}
	switch k.state {
	case awaited, refused:
		k.acquire(ctx, eviction.Slots, cooldown)
		if !k.state.isHeld() {
			k.pause = longer(k.pause, eviction.Slots)
			return pace.Jittered(k.pause)
		}
		k.pause = 0
		return cooldown / renewsPerCooldown
	case reserved, used:
		k.renew(ctx, cooldown)
		return cooldown / renewsPerCooldown
	case cooling:
		k.renew(ctx, cooldown)
		if k.request.request == decide.SlotNotNeeded {
			return min(left, cooldown/renewsPerCooldown)
		}
		return cooldown / renewsPerCooldown
	case releasing:
		k.release(ctx)
		return tryEvery
	default:
		return untilRequested
	}
}

// longer returns the pause after that before, so that each of the slots is read once
// within tryWithin: the pause is shorter where more slots are to be read in turn.
func longer(pause time.Duration, slots int) time.Duration {
	most := tryWithin * apiserver.SlotsAtATime / time.Duration(max(slots, apiserver.SlotsAtATime))
	return max(tryEvery, min(2*pause, most))
}

// untilRequested is as good as never: a request wakes the keeper.
const untilRequested = time.Hour

func (k *Keeper) acquire(ctx context.Context, slots int, cooldown time.Duration) {
	begin := k.now()
	held, err := k.client.Acquire(ctx, slots, cooldown, k.request.cfg.Policy().Evicts)
	if err != nil {
		k.log.Warn("cannot ask for an eviction slot; trying again, nothing new is evicted until then", "error", err)
		return
	}
	if !held {
		k.settle(denied)
		return
	}
	k.confirm(begin, cooldown)
	k.log.Info("eviction slot taken")
}

func (k *Keeper) renew(ctx context.Context, cooldown time.Duration) {
	begin := k.now()
	held, err := k.client.Renew(ctx)
	if err != nil {
		k.log.Warn("cannot renew the eviction slot; trying again, nothing new is evicted until then", "error", err)
		return
	}
	if !held {
		k.log.Warn("eviction slot lost; stepping down")
		k.settle(denied)
		return
	}
	k.confirm(begin, cooldown)
}

func (k *Keeper) release(ctx context.Context) {
	k.confirmed.Store(0) // from here on another Node may have it
	if err := k.client.Release(ctx); err != nil {
		k.log.Warn("cannot release the eviction slot; trying again", "error", err)
		return
	}
	k.log.Info("eviction slot released")
	k.settle(released)
}

// confirm notes that the slot was ours at that time. Half of the cooldown is
// left to others' clocks and to requests that are slow to arrive.
func (k *Keeper) confirm(at time.Time, cooldown time.Duration) {
	k.settle(granted)
	k.confirmed.Store(at.Add(cooldown / 2).UnixNano())
}

// settle takes in an answer, and then what is still requested.
func (k *Keeper) settle(answer event) {
	k.move(answer)
	k.move(eventOf(k.request.request))
}

// status is what is known of the slot now.
func (k *Keeper) status() decide.Slot {
	switch {
	case k.request.request < decide.SlotRequested:
		return decide.SlotUnknown // an answer to an earlier request is none now
	case k.state.isHeld() && k.now().Before(k.MayEvictUntil()):
		return decide.SlotHeld
	case k.state == refused:
		return decide.SlotNone
	}
	return decide.SlotUnknown
}
