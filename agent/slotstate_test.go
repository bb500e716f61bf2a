package agent

import (
	"log/slog"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
)

// Every event in every state that can be reached: a slot is held from the
// answer that grants it until an answer, or another agent, says otherwise.
func TestSlotStatesWalked(t *testing.T) {
	events := map[slotEvent]string{
		ofAnother: "of another", notNeeded: "not needed", requested: "requested", inUse: "in use",
		granted: "granted", denied: "denied", released: "released", cooled: "cooled",
	}
	reached := map[slotState]bool{slotUnneeded: true}
	for queue := []slotState{slotUnneeded}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for event, name := range events {
			to := from.on(event)
			if !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
			for what, wrong := range map[string]bool{
				"a slot is held without having been granted": !from.isHeld() && to.isHeld() && event != granted,
				"a slot is forgotten that may be held": from.isHeld() && !to.isHeld() &&
					event != ofAnother && event != denied && event != released,
				"a denied slot counts as held":                    event == denied && to.isHeld(),
				"another agent's slot counts as ours":             event == ofAnother && to != slotUnneeded,
				"what is not needed is still asked for":           event == notNeeded && (to == slotAwaited || to == slotRefused),
				"what is not needed is still used":                event == notNeeded && (to == slotUsed || to == slotReserved),
				"a used slot skips its cooldown":                  from == slotUsed && (to == slotReserved || to == slotReleasing),
				"a slot cools that was not used":                  to == slotCooling && from != slotCooling && from != slotUsed,
				"a slot is released during its cooldown":          from == slotCooling && to == slotReleasing && event != cooled,
				"what is requested is neither held nor asked for": (event == requested || event == inUse) && to == slotUnneeded,
				"what is in use does not count as used":           event == inUse && to.isHeld() && to != slotUsed,
			} {
				if wrong {
					t.Errorf("%s, %s: %s; %s", from, name, to, what)
				}
			}
		}
	}
	for state := slotUnneeded; state <= slotReleasing; state++ {
		if !reached[state] {
			t.Errorf("%s is never reached", state)
		}
	}
}

// A request that replaces one that the keeper has not read yet tells that the
// slot was in use: there is a cooldown after that, too.
func TestUnreadRequestOfASlotInUseIsNotForgotten(t *testing.T) {
	cfg := config.Default()
	now := time.Unix(1e9, 0)
	k := newSlotKeeper(nil, slog.New(slog.DiscardHandler), nil, func() time.Time { return now })
	k.state = slotReserved
	for _, r := range []decide.SlotRequest{decide.SlotInUse, decide.SlotRequested, decide.SlotNotNeeded} {
		k.requests.put(slotRequest{request: r, cfg: cfg})
	}
	k.take(<-k.requests.newest)
	if k.state != slotCooling || !k.coolingSince.Equal(now) {
		t.Errorf("%s since %s", k.state, k.coolingSince)
	}
	k.requests.put(slotRequest{request: decide.SlotNotNeeded, cfg: cfg})
	select {
	case <-k.requests.newest:
		t.Error("the same request again counts as a new one")
	default:
	}
}
