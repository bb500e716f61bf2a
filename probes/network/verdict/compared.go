package verdict

import "time"

// shape has the numbers of a comparison with the peers, and shapes has those of all.
type shape struct {
	reason string
	// class has to be well once before it can fail.
	class Class
	// dwell is how long it must fail here, and not at the peers. By then they have seen a fault
	// of all. short is that where it fails at none of them; 0: no such time is short enough.
	dwell, short time.Duration
	// isCertain: one sample is enough, as the peers have tried since it began to fail here,
	// which is then what the dwell is counted from. Else it is after the short time.
	isCertain bool
}

// A fault of the whole fleet can take half a minute to reach the last host. If it reaches one host
// after another, it has reached some peer within the short time.
func shapes(period time.Duration) [5]shape {
	after := func(d time.Duration) time.Duration { return d + 2*period }
	return [...]shape{
		// Pods on a host without power stay listed until some seconds after the control plane
		// notices. The host of the only remaining pod would query those pods alone.
		{"PodsUnreachable", Pods, after(55 * time.Second), after(10 * time.Second), false},
		{"DNSUnreachable", DNS, after(24 * time.Second), after(10 * time.Second), false},
		// Every roll-out of the CNI restarts the node's own daemons.
		{"NodeDaemonFails", Local, 100 * time.Second, 0, false},
		// The first lost packet of a peer may come some rounds after the fault.
		{"PacketLoss", Peers, after(44 * time.Second), after(5 * time.Second), false},
		// By then the peers have learned of the loss and have tried their own full packets, and
		// their peers have as well. With this wait, the simulation of a fault that reaches all
		// hosts within half a minute taints no healthy host. Without it, a few are tainted.
		{"LargePacketsLost", Peers, after(5 * time.Second), 0, true},
	}
}

// compared is the common part of all classes in which a host is compared with its peers. A failure
// that only this host has is its own fault.
type compared struct {
	shape
	// here: it fails here. apart: and not at the peers. alone: and at none of them.
	here, apart, alone streak
	// isNear: it may fail, and not often or long enough to tell.
	isNear bool
	// isPressing: the next round will show more, so it starts immediately.
	isPressing bool
	// isUntried: the class was healthy since the start, but this comparison has not been yet.
	isUntried bool
	// heard is what the peers asked report of it.
	heard opinions
}

// comparison is a compared with the methods in which the classes differ.
type comparison interface {
	base() *compared
	add(r *Round)
	String() string // what was found, for people
}

func (c *compared) base() *compared { return c }

// take takes in what a round showed.
func (c *compared) take(here, apart, alone bool, at time.Time) {
	c.here.add(here, at)
	c.apart.add(here && apart, at)
	c.alone.add(here && apart && alone, at)
	c.isNear = c.here.any()
}

// accuses reports whether the class has failed here, and not at the peers, for long enough.
func (c *compared) accuses(now time.Time) bool {
	since := &c.apart
	if c.isCertain {
		since = &c.here
	}
	return c.apart.now() && since.holds(c.dwell, now) || c.isAccusedAlone(now)
}

// isAccusedAlone reports whether it fails at no peer, and has for the short time.
func (c *compared) isAccusedAlone(now time.Time) bool {
	return c.short > 0 && c.alone.now() && c.alone.holds(c.short, now)
}

// due is when a round may show that it fails here alone; zero: none does soon.
func (c *compared) due(now time.Time) time.Time {
	switch {
	case c.isPressing:
		return now
	case c.short == 0:
		return time.Time{}
	}
	return c.alone.due(c.short)
}

// opinions counts what peers report: well of know report it well.
type opinions struct{ know, well int }

// add adds a peer's report. A peer under maintenance does not count as a witness against this host.
func (r *opinions) add(well, known, maintenance bool) {
	if !known || well && maintenance {
		return
	}
	r.know++
	if well {
		r.well++
	}
}

// witnesses is how many peers must know a class; with fewer than twice as many peers, half of them.
// Otherwise, while most peers do not answer (during a flood, for example), one lying peer could
// blame this host for a fault of the whole fleet.
const witnesses = 3

// areEnough reports whether enough of the peers asked know something.
func (r opinions) areEnough(asked int) bool {
	return r.know > 0 && (r.know >= witnesses || 2*r.know >= asked)
}

// areWitnesses reports whether enough do, and two thirds of these report it well.
func (r opinions) areWitnesses(asked int) bool { return r.areEnough(asked) && 3*r.well >= 2*r.know }
