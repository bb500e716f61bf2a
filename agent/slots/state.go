package slots

import "github.com/taintlet/taintlet/agent/decide"

// state is where this Node stands with the fleet's eviction slots.
type state uint8

const (
	// unneeded: none is held and none is requested.
	unneeded state = iota
	// awaited: one is requested, and it is not known whether there is one.
	awaited
	// refused: one is requested and there is none, or it was lost.
	refused
	// reserved: held, and not used yet.
	reserved
	// used: held, and the Node carries NoExecute taints or is about to.
	used
	// cooling: held until the cooldown is over; the NoExecute taints are gone.
	cooling
	// releasing: held, and to be given back.
	releasing
)

// isHeld reports whether the Lease has this Node's name.
func (s state) isHeld() bool { return s >= reserved }

// String is the state's name in tests and logs.
func (s state) String() string {
	return [...]string{"unneeded", "awaited", "refused", "reserved", "used", "cooling", "releasing"}[s]
}

// event is what moves a state.
type event uint8

const (
	// What the decider requests.
	ofAnother event = iota // another agent of this Node is active and keeps the slot
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

// transitions say which state an event leads to. An event that is not
// listed leaves the state as it is.
func transitions() map[state]map[event]state {
	return map[state]map[event]state{
		unneeded:  {requested: awaited, inUse: awaited},
		awaited:   {ofAnother: unneeded, notNeeded: unneeded, granted: reserved, denied: refused},
		refused:   {ofAnother: unneeded, notNeeded: unneeded, granted: reserved},
		reserved:  {ofAnother: unneeded, notNeeded: releasing, inUse: used, denied: refused},
		used:      {ofAnother: unneeded, notNeeded: cooling, requested: cooling, denied: refused},
		cooling:   {ofAnother: unneeded, inUse: used, denied: refused, cooled: releasing},
		releasing: {ofAnother: unneeded, requested: reserved, inUse: used, denied: refused, released: unneeded},
	}
}

// on returns the state that an event leads to.
func (s state) on(e event) state {
	if next, listed := transitions()[s][e]; listed {
		return next
	}
	return s
}

// eventOf is the event that a request of the decider is.
func eventOf(r decide.SlotRequest) event {
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
