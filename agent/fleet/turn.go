package fleet

import "time"

const (
	// refreshEvery is how often EndpointSlices are read, ±10 %; those of the agents of a
	// large fleet less often (turnsBetween). While fewer than enough peers are known, as
	// when the fleet has just been installed, they are read after refreshSoonest and then
	// after twice the time before.
	refreshEvery   = 10 * time.Minute
	refreshSoonest = 30 * time.Second
	enough         = 5

	// slicesAtATime is the number of EndpointSlices of the agents, about 1,000 Nodes, up
	// to which their metadata is read with each refresh. There is one slice for each 100
	// agents, so that the answers to all agents grow with the square of the fleet.
	slicesAtATime = 10
	// mostTurns is in how many refreshes the metadata is read at least once: one hour.
	// An old list makes no agent taint its Node, and is read sooner when a peer is gone.
	// But no new Node, and none of a new zone, becomes a peer before the list is read.
	mostTurns = 6
)

// turnsBetween returns in how many refreshes the metadata of that many slices is read
// once.
func turnsBetween(slices int) int {
	return min(max(1, (slices+slicesAtATime/2)/slicesAtATime), mostTurns)
}
