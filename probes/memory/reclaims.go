package memory

import "time"

// reclaims is how often a task had to reclaim memory of the host before it got any.
type reclaims struct {
	count   uint64 // since the host started
	counted bool   // the kernel counts it
}

// stallPerReclaim is the longest stall that one reclaim accounts for. In the
// recorded overload tasks waited for 0.1 to 4 ms for each, in any span of 2 s in
// which they waited for 5 % of the time or more. It is several times that, because a
// slow disk makes a reclaim wait for its writes.
const stallPerReclaim = 20 * time.Millisecond

// accountFor returns how much of a stall the host's own reclaims since an earlier
// sample account for, and how many there were. Where the kernel does not count them,
// they account for all of it: the level of available memory that goes with every
// stall has to do then.
func (r reclaims) accountFor(stall time.Duration, earlier reclaims) (counts time.Duration, times uint64) {
	switch {
	case !r.counted || !earlier.counted:
		return stall, 0
	case r.count <= earlier.count: // it may wrap
		return 0, 0
	}
	times = r.count - earlier.count
	return min(stall, time.Duration(min(times, uint64(stall/stallPerReclaim)+1))*stallPerReclaim), times
}
