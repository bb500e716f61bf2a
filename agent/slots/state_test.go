package slots

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
	events := map[event]string{
		ofAnother: "of another", notNeeded: "not needed", requested: "requested", inUse: "in use",
		granted: "granted", denied: "denied", released: "released", cooled: "cooled",
	}
	reached := map[state]bool{unneeded: true}
	for queue := []state{unneeded}; len(queue) > 0; queue = queue[1:] {
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
				"another agent's slot counts as ours":             event == ofAnother && to != unneeded,
				"what is not needed is still asked for":           event == notNeeded && (to == awaited || to == refused),
				"what is not needed is still used":                event == notNeeded && (to == used || to == reserved),
				"a used slot skips its cooldown":                  from == used && (to == reserved || to == releasing),
				"a slot cools that was not used":                  to == cooling && from != cooling && from != used,
				"a slot is released during its cooldown":          from == cooling && to == releasing && event != cooled,
				"what is requested is neither held nor asked for": (event == requested || event == inUse) && to == unneeded,
				"what is in use does not count as used":           event == inUse && to.isHeld() && to != used,
			} {
				if wrong {
					t.Errorf("%s, %s: %s; %s", from, name, to, what)
				}
			}
		}
	}
	for state := unneeded; state <= releasing; state++ {
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
	k := NewKeeper(nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
	k.state = reserved
	for _, r := range []decide.SlotRequest{decide.SlotInUse, decide.SlotRequested, decide.SlotNotNeeded} {
		k.Request(r, cfg)
	}
	k.take(<-k.newest)
	if k.state != cooling || !k.coolingSince.Equal(now) {
		t.Errorf("%s since %s", k.state, k.coolingSince)
	}
	k.Request(decide.SlotNotNeeded, cfg)
	select {
	case <-k.newest:
		t.Error("the same request again counts as a new one")
	default:
	}
}
