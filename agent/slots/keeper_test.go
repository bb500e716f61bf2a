package slots

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// answer is how the API server answers all that it is asked.
type answer string

const (
	granted answer = "granted"
	denied  answer = "denied" // all are taken, or ours was lost
	beyond  answer = "beyond" // ours is none of the configured ones, although it is renewed, and no other is free
	failing answer = "failing"
)

// server is a fleet's slots that answer as they are told, and note what they were asked.
type server struct {
	t      *testing.T
	keeper *Keeper
	answer answer
	asked  []string
}

func (s *server) says(call string) (bool, error) {
	s.asked = append(s.asked, call)
	if s.answer == failing {
		return false, errors.New("503 Service Unavailable")
	}
	return s.answer == granted || s.answer == beyond && call == "renew", nil
}

func (s *server) Acquire(context.Context, int, time.Duration, func(taints.Pair) bool) (bool, error) {
	return s.says("acquire")
}

func (s *server) Renew(context.Context) (bool, error) { return s.says("renew") }

func (s *server) Release(context.Context) error {
	if s.keeper.confirmed.Load() != 0 {
		s.t.Error("pods may be evicted while the slot is released")
	}
	_, err := s.says("release")
	return err
}

func (s *server) IsBeyond(int) bool { return s.answer == beyond }

// at is where a Keeper is, and what the test knows of how it came there.
type at struct {
	newest    level
	slot      decide.Slot
	heldSince time.Time
	confirmed int64
	now       time.Time
	usedAt    time.Time // in use while it was held, most recently; zero: not since it is held
	path      string
}

// name tells where a Keeper is from where it acts in another way.
func (a at) name(cooldown time.Duration) string {
	isHeld := a.slot == decide.SlotHeld
	cools := !a.usedAt.IsZero() && a.now.Sub(a.usedAt) < cooldown
	switch wanted := a.newest.isWanted(); {
	case !isHeld && !wanted:
		return "unneeded"
	case !isHeld && a.slot == decide.SlotNone:
		return "refused"
	case !isHeld:
		return "awaited"
	case a.newest.request == decide.SlotInUse:
		return "used"
	case cools:
		return "cooling"
	case wanted && a.usedAt.IsZero():
		return "reserved"
	case wanted:
		return "reserved after use"
	}
	return "releasing"
}

// Every level, or two of which the first is never read, after every other in each place
// that can be reached, with every answer, soon and after the cooldown: a slot is held
// from the answer that grants it until an answer says otherwise.
func TestSlotStatesWalked(t *testing.T) {
	cfg := config.Default()
	cooldown := cfg.Eviction.Cooldown.Duration
	levels := []decide.SlotRequest{decide.SlotNotNeeded, decide.SlotRequested, decide.SlotInUse}
	reached := map[string]bool{}
	start := at{now: time.Unix(1e6, 0), path: "unneeded"}
	for queue := []at{start}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for _, unread := range append(slices.Clone(levels), decide.SlotUndecided) { // nothing is said then
			for _, read := range levels {
				for _, says := range []answer{granted, denied, beyond, failing} {
					for _, wait := range []time.Duration{time.Second, cooldown + time.Second} {
						to := walk(t, cfg, from, []decide.SlotRequest{unread, read}, says, wait)
						isRecent := to.now.Sub(to.newest.usedUntil) < cooldown // also if it was not held then
						key := fmt.Sprint(to.name(cooldown), to.newest.request, to.confirmed > to.now.UnixNano(), isRecent)
						if !reached[key] {
							reached[key], reached[to.name(cooldown)] = true, true
							queue = append(queue, to)
						}
					}
				}
			}
		}
	}
	for _, name := range []string{"unneeded", "awaited", "refused", "reserved", "used", "cooling", "reserved after use", "releasing"} {
		if !reached[name] {
			t.Errorf("%s is never reached", name)
		}
	}
}

// walk takes one step, checks it, and returns where it led.
func walk(t *testing.T, cfg *config.Config, from at, said []decide.SlotRequest, says answer, wait time.Duration) at {
	t.Helper()
	now, cooldown := from.now.Add(wait), cfg.Eviction.Cooldown.Duration
	s := &server{t: t, answer: says}
	k := NewKeeper(s, slog.New(slog.DiscardHandler), func() time.Time { return now })
	k.newest, k.slot, k.heldSince = from.newest, from.slot, from.heldSince
	k.confirmed.Store(from.confirmed)
	s.keeper = k
	for _, request := range said {
		k.Request(request, cfg)
	}
	now = now.Add(time.Millisecond)
	k.reconcile(t.Context(), k.read(), now)
	request := said[len(said)-1]
	to := at{newest: k.newest, slot: k.slot, heldSince: k.heldSince, confirmed: k.confirmed.Load(), now: now}
	to.path = fmt.Sprintf("%s; %v, %s after %s", from.path, said, says, wait)
	wasHeld, isHeld, isWanted := from.slot == decide.SlotHeld, k.slot == decide.SlotHeld, to.newest.isWanted()
	used := from.usedAt // while it was held, until it was read that it is not in use
	if wasHeld && (from.newest.request == decide.SlotInUse || slices.Contains(said, decide.SlotInUse)) {
		used = now.Add(-time.Millisecond)
	}
	if isHeld {
		if to.usedAt = used; request == decide.SlotInUse {
			to.usedAt = now
		}
	}
	asks := func(call string) bool { return slices.Contains(s.asked, call) }
	cools := wasHeld && !used.IsZero() && now.Sub(used) < cooldown
	isLost := says == denied || says == beyond
	for what, wrong := range map[string]bool{
		"a slot is held without having been granted": !wasHeld && isHeld && (says != granted || !asks("acquire")),
		"a slot is forgotten that may be held": wasHeld && !isHeld &&
			!isLost && (says != granted || !asks("release")),
		"a denied slot counts as held":                         isHeld && isLost && len(s.asked) > 0 && !asks("release"),
		"what is not needed is still asked for":                request == decide.SlotNotNeeded && asks("acquire"),
		"what is not needed is still used":                     request == decide.SlotNotNeeded && isHeld && !cools && !asks("release"),
		"a used slot skips its cooldown, or is released in it": cools && asks("release"),
		"a slot is released that is wanted":                    isWanted && asks("release"),
		"a slot is kept that is not renewed":                   isHeld && !asks("release") && len(s.asked) != 1,
		"what is requested is neither held nor asked for":      isWanted && !isHeld && len(s.asked) == 0,
		"what is held is lost and nothing says so":             isWanted && isLost && k.answer(k.read()) != decide.SlotNone,
		"an eviction without a slot":                           !isHeld && to.confirmed != 0,
		"an eviction by a slot that was not confirmed":         to.confirmed > from.confirmed && says != granted,
		"an answer to nothing":                                 !isWanted && k.answer(k.read()) != decide.SlotUnknown,
	} {
		if wrong {
			t.Errorf("%s (%s): asked %v, held %t; %s", to.path, to.name(cooldown), s.asked, isHeld, what)
		}
	}
	return to
}

// A level that replaces one that the Keeper has not read yet tells that the slot was in
// use: there is a cooldown after that, too.
func TestUnreadRequestOfASlotInUseIsNotForgotten(t *testing.T) {
	now, cfg := time.Unix(1e6, 0), config.Default()
	s := &server{t: t, answer: granted}
	k := NewKeeper(s, slog.New(slog.DiscardHandler), func() time.Time { return now })
	s.keeper, k.slot, k.heldSince = k, decide.SlotHeld, now.Add(-time.Hour)
	for _, r := range []decide.SlotRequest{decide.SlotInUse, decide.SlotRequested, decide.SlotNotNeeded} {
		k.Request(r, cfg)
	}
	<-k.woken
	cooldown := cfg.Eviction.Cooldown.Duration
	if left := k.coolsFor(k.read(), now); left != cooldown {
		t.Errorf("cools for %s", left)
	}
	k.Request(decide.SlotNotNeeded, cfg)
	select {
	case <-k.woken:
		t.Error("the same request again counts as a new one")
	default:
	}
	now = now.Add(cooldown - time.Second)
	if again := k.reconcile(t.Context(), k.read(), now); again != time.Second || !slices.Equal(s.asked, []string{"renew"}) {
		t.Errorf("%v, and again in %s", s.asked, again)
	}
	now = now.Add(time.Second)
	k.reconcile(t.Context(), k.read(), now)
	if !slices.Equal(s.asked, []string{"renew", "release"}) {
		t.Errorf("%v", s.asked)
	}
}
