// Package consumers names the pods and system units that took a host's memory or tasks. It reads
// the processes only while a condition is near its threshold, groups them by pod and by unit, and
// compares them with a snapshot of the healthy host. The finding becomes part of a condition's
// message, and decides nothing.
//
// Reading needs Linux. Comparing is pure.
package consumers

import (
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Want says whether the processes are to be read.
type Want uint8

// What can be wanted.
const (
	Nothing Want = iota
	Soon         // as far as the allowance goes
	Now          // also in advance of the allowance, a little
)

const (
	// renewAfter is how old the baseline is when it is replaced while the condition is near its
	// threshold and not bad. So a finding covers at most the 10 to 20 minutes before the condition
	// was bad.
	renewAfter = 10 * time.Minute
	// slowest is how often the processes are read at least while the condition is bad.
	slowest = time.Minute
)

// Course follows one condition, from the last healthy sample on. It has no clock and reads
// nothing.
type Course struct {
	Resource Resource

	healthy baseline // of the newest healthy sample, without a snapshot
	host    Host     // of the newest sample
	base    *baseline
	next    *baseline // takes the place of base
	isNear  bool
	// badAt is when the newest bad sample was, badSince the first of those in a row. Zero:
	// there was none since the last healthy one.
	badAt, badSince time.Duration
	isBad           bool
	// owed: no snapshot was taken since the condition was near, or bad.
	owed    bool
	readAt  time.Duration
	finding Finding
}

// Follow takes in a sample, and what there was of the resource then. now counts from the host's
// boot. It says whether the processes are to be read. A sample is near its threshold when its severity is above 0: from
// the easier threshold on that clears, or when half of any other measure is reached.
func (c *Course) Follow(o probes.Observation, host Host, now time.Duration) Want {
	if o.Level == probes.Unknown {
		return Nothing
	}
	if isHealthy(o) {
		*c = Course{Resource: c.Resource, healthy: baseline{since: now, host: host}}
		return Nothing
	}
	isBad := o.Level > probes.OK
	c.owed = c.owed || !c.isNear || isBad && !c.isBad
	if isBad {
		c.badAt = now
		if !c.isBad {
			c.badSince = now
		}
	}
	c.host, c.isNear, c.isBad = host, true, isBad
	switch since := now - c.readAt; {
	case c.owed:
		return Now
	case isBad && since >= min(slowest, (now-c.badSince)/10):
		return Soon
	case since >= renewAfter:
		return Soon
	}
	return Nothing
}

// isHealthy reports whether a sample is not even near its threshold.
func isHealthy(o probes.Observation) bool {
	return o.Level == probes.OK && o.Severity == 0 && !o.Hysteresis
}

// Add takes in the processes, as Follow wanted them.
func (c *Course) Add(s *Snapshot) {
	if !c.isNear {
		return // the host has become healthy in between
	}
	c.owed, c.readAt = false, s.At
	switch {
	case c.base == nil:
		base := c.healthy
		if base.since == 0 { // the first sample of all was near already
			base.since, base.host = s.At, c.host
		}
		base.snapshot, base.atFirst = s, c.host
		c.base = &base
	case !c.isBad && s.At-c.badAt >= renewAfter && s.At-c.base.snapshot.At >= renewAfter:
		if c.next != nil {
			c.base = c.next
		}
		c.next = &baseline{snapshot: s, since: s.At, host: c.host, atFirst: c.host}
	}
	c.finding = c.base.compare(c.Resource, s, c.host).after(c.finding, s)
}

// Finding returns the finding of the newest snapshot while the newest sample is bad. A new incident
// does not show the finding of an earlier one.
func (c *Course) Finding() Finding {
	if !c.isBad || c.owed {
		return Finding{}
	}
	return c.finding
}
