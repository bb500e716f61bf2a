package fleet

const (
	// slicesAtATime is the number of EndpointSlices of the agents, some 1,000 Nodes, up
	// to which their metadata is read with each refresh. There is one slice for each 100
	// agents, so that the answers to all agents grow with the square of the fleet.
	slicesAtATime = 10
	// mostTurns is in how many refreshes the metadata is read at least once: one hour.
	// Nobody is accused by an old list, and a peer that is gone has it read sooner. But
	// no new Node, and none of a new zone, becomes a peer before the list is read.
	mostTurns = 6
)

// turnsBetween returns with each how many refreshes the metadata of so many slices is
// read.
func turnsBetween(slices int) int {
	return min(max(1, (slices+slicesAtATime/2)/slicesAtATime), mostTurns)
}

// isAgentsTurn reports whether a refresh reads where the agents are: when it is their
// turn, or when peers are too few or do not answer. The caller holds reading.
func (f *Fleet) isAgentsTurn() bool {
	f.turn++
	known := f.Status()
	return f.turn >= turnsBetween(f.agents.count) || known.Known < enough || known.Answered < known.Known
}
