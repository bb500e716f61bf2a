package pid

// budget is a limit of tasks and how many there are.
type budget struct {
	used, limit uint64
	setting     string // what sets the limit
}

// free returns how many tasks may still be started. It is 0 where the limit was
// lowered below the number of tasks that run.
func (b budget) free() float64 { return float64(b.limit - min(b.used, b.limit)) }

// share returns the part of the limit that is left, 0 to 1.
func (b budget) share() float64 { return b.free() / float64(b.limit) }

// sample is how many tasks there were at one time, and how many there might be.
type sample struct {
	host budget
	pods *budget // nil: no limit, or none that is visible
	note string  // tells a person which limit is not believed
}

// tightest returns the budget of which the smaller share is left.
func (s sample) tightest() budget {
	if s.pods != nil && s.pods.share() < s.host.share() {
		return *s.pods
	}
	return s.host
}
