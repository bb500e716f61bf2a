package agent

import "github.com/taintlet/taintlet/agent/decide"

// slotState is where this Node stands with the fleet's eviction slots.
type slotState uint8

const (
	// slotUnneeded: none is held and none is requested.
	slotUnneeded slotState = iota
	// slotAwaited: one is requested, and it is not known whether there is one.
	slotAwaited
	// slotRefused: one is requested and there is none, or it was lost.
	slotRefused
	// slotReserved: held, and not used yet.
	slotReserved
	// slotUsed: held, and the Node carries NoExecute taints or is about to.
	slotUsed
	// slotCooling: held until the cooldown is over; the NoExecute taints are gone.
	slotCooling
	// slotReleasing: held, and to be given back.
	slotReleasing
)

// isHeld reports whether the Lease has this Node's name.
func (s slotState) isHeld() bool { return s >= slotReserved }

// String is the state's name in tests and logs.
func (s slotState) String() string {
	return [...]string{"unneeded", "awaited", "refused", "reserved", "used", "cooling", "releasing"}[s]
}

// slotEvent is what moves a slotState.
type slotEvent uint8

const (
	// What the decider requests.
	ofAnother slotEvent = iota // another agent of this Node is active and keeps the slot
	notNeeded
	requested
	inUse
	// What the API server answered.
	granted // acquired or renewed
	denied  // all are taken, ours was lost, or it is not one of them any more
	released
	// cooled: the cooldown is over.
	cooled
)

// slotTransitions say which state an event leads to. An event that is not
// listed leaves the state as it is.
func slotTransitions() map[slotState]map[slotEvent]slotState {
	return map[slotState]map[slotEvent]slotState{
		slotUnneeded:  {requested: slotAwaited, inUse: slotAwaited},
		slotAwaited:   {ofAnother: slotUnneeded, notNeeded: slotUnneeded, granted: slotReserved, denied: slotRefused},
		slotRefused:   {ofAnother: slotUnneeded, notNeeded: slotUnneeded, granted: slotReserved},
		slotReserved:  {ofAnother: slotUnneeded, notNeeded: slotReleasing, inUse: slotUsed, denied: slotRefused},
		slotUsed:      {ofAnother: slotUnneeded, notNeeded: slotCooling, requested: slotCooling, denied: slotRefused},
		slotCooling:   {ofAnother: slotUnneeded, inUse: slotUsed, denied: slotRefused, cooled: slotReleasing},
		slotReleasing: {ofAnother: slotUnneeded, requested: slotReserved, inUse: slotUsed, denied: slotRefused, released: slotUnneeded},
	}
}

// on returns the state that an event leads to.
func (s slotState) on(e slotEvent) slotState {
	if next, listed := slotTransitions()[s][e]; listed {
		return next
	}
	return s
}

// eventOf is the event that a request of the decider is.
func eventOf(r decide.SlotRequest) slotEvent {
	switch r {
	case decide.SlotOfAnother:
		return ofAnother
	case decide.SlotRequested:
		return requested
	case decide.SlotInUse:
		return inUse
	default: // SlotUndecided is never passed on
		return notNeeded
	}
}
