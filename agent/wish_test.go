package agent

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
)

// A wish that replaces one that the keeper has not read yet tells that the slot
// was in use: it rests after that, too.
func TestUnreadWishOfASlotInUseIsNotForgotten(t *testing.T) {
	cfg := config.Default()
	l := &loop{wishes: make(chan slotWish, 1)}
	l.wishSlot(slotWish{wish: decide.SlotInUse, cfg: cfg})
	l.wishSlot(slotWish{wish: decide.SlotWanted, cfg: cfg})
	l.wishSlot(slotWish{wish: decide.SlotNotNeeded, cfg: cfg})
	now := time.Unix(1e9, 0)
	k := &slotKeeper{held: true, wish: slotWish{wish: decide.SlotWanted, cfg: cfg}, now: func() time.Time { return now }}
	if !k.take(<-l.wishes) || !k.used || !k.idleSince.Equal(now) {
		t.Errorf("used %t, idle since %s", k.used, k.idleSince)
	}
	if again := (slotWish{wish: decide.SlotNotNeeded, cfg: cfg}); k.take(again) {
		t.Error("the same wish again counts as a new one")
	}
}
