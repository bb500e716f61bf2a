package simulate

// A day of ordinary life on a busy node, for the probes of memory and PIDs: builds,
// services that pre-touch their memory, cron, roll-outs and pods at their own limits.
// Nothing in it is an overload, so no agent may taint.

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Load is something that a host does for a while: it takes memory and tasks at a
// constant rate, keeps them, and gives them back at a constant rate.
type Load struct {
	// Begin is the time since the begin of the day.
	Begin            time.Duration
	Rise, Keep, Fall time.Duration
	// Memory is what it takes, in bytes, and Tasks how many processes and threads.
	Memory, Tasks float64
}

func (l Load) end() time.Duration { return l.Begin + l.Rise + l.Keep + l.Fall }

// share is how much of it is there, 0 to 1.
func (l Load) share(at time.Duration) float64 {
	since := at - l.Begin
	switch {
	case since < 0 || since >= l.Rise+l.Keep+l.Fall:
		return 0
	case since < l.Rise:
		return since.Seconds() / l.Rise.Seconds()
	case since < l.Rise+l.Keep:
		return 1
	}
	return (l.end() - at).Seconds() / l.Fall.Seconds()
}

// Thrashing is a pod at its own memory limit: its tasks wait, and the host has memory.
type Thrashing struct {
	Begin, For time.Duration
	// Waits is the share of the time, 0 to 1, for which some task waits.
	Waits float64
}

// Day is what a host does from its Begin on. Loads are in the order of their Begin.
type Day struct {
	Loads     []Load
	Thrashing []Thrashing
	// HostReclaims are the times at which the host itself had to reclaim, once.
	HostReclaims []time.Duration
}

// Busy returns a day of 24 hours:
//
//   - 00:00 a batch job takes 8 GiB within 40 minutes, keeps it for an hour, and gives
//     it back; so does the next one at 03:00
//   - 06:00 to 13:00 a job of a CI takes 2 GiB in 2 s every 150 s (17.6 to 9.6 % of
//     25 GiB available), and 400 threads
//   - 13:00 to 18:00 a service whose JVM pre-touches 3 GiB in 3 s is rolled out every
//     5 minutes (24 to 12 %), and every third time the old one leaves a minute later
//   - 18:00 to 20:00 a pod thrashes at its own limit for ten minutes of each quarter of
//     an hour, 12.5 % available, while the host itself reclaims once a minute
//   - 20:00 to 22:00 a build starts 5,000 threads in 2 s every 5 minutes, from 15,000
//     of 32,768
//   - 22:00 to 24:00 single pre-touches of 2 GiB in 1 s, every 10 minutes (19 to 11 %)
//
// and through all of it cron every 10 minutes (600 processes in a second, 150 MiB), its
// peak at each full hour (2,500 processes in 2 s, 300 MiB), and at 05:00, 12:00 and
// 17:30 a roll-out of twelve DaemonSets, whose pods leave and come.
func Busy(seed uint64) Day {
	random := rand.New(rand.NewPCG(seed, 1))
	var d Day
	d.levels()
	for _, begin := range []time.Duration{0, 3 * time.Hour} {
		d.add(Load{Begin: begin, Rise: 40 * time.Minute, Keep: time.Hour, Fall: 20 * time.Minute, Memory: 8 * gib, Tasks: 300})
	}
	every(150*time.Second, 6*time.Hour, 13*time.Hour, func(at time.Duration) {
		d.add(Load{Begin: at, Rise: 2 * time.Second, Keep: between(random, 50*time.Second, 110*time.Second), Fall: time.Second, Memory: 2 * gib, Tasks: 400})
	})
	every(5*time.Minute, 13*time.Hour, 18*time.Hour, func(at time.Duration) {
		keep := 4 * time.Minute
		if random.IntN(3) == 0 {
			keep = time.Minute
		}
		d.add(Load{Begin: at, Rise: 3 * time.Second, Keep: keep, Fall: 2 * time.Second, Memory: 3 * gib, Tasks: 200})
	})
	every(15*time.Minute, 18*time.Hour, 20*time.Hour, func(at time.Duration) {
		d.Thrashing = append(d.Thrashing, Thrashing{Begin: at, For: 10 * time.Minute, Waits: 0.2 + 0.4*random.Float64()})
	})
	every(time.Minute, 18*time.Hour, 20*time.Hour, func(at time.Duration) { d.HostReclaims = append(d.HostReclaims, at) })
	every(5*time.Minute, 20*time.Hour+150*time.Second, 22*time.Hour, func(at time.Duration) {
		d.add(Load{Begin: at, Rise: 2 * time.Second, Keep: 2 * time.Minute, Fall: 2 * time.Second, Memory: 500 * mib, Tasks: 5000})
	})
	every(10*time.Minute, 22*time.Hour, 24*time.Hour, func(at time.Duration) {
		d.add(Load{Begin: at, Rise: time.Second, Keep: 3 * time.Minute, Fall: time.Second, Memory: 2 * gib, Tasks: 50})
	})
	d.cron()
	d.rollOuts(random)
	slices.SortStableFunc(d.Loads, func(a, b Load) int { return int(a.Begin - b.Begin) })
	return d
}

func (d *Day) add(l Load) { d.Loads = append(d.Loads, l) }

// levels adds what runs for hours, and moves within minutes between the parts of the
// day.
func (d *Day) levels() {
	for _, part := range []struct {
		from, to  time.Duration
		available float64 // of 25 GiB
		tasks     float64
	}{
		{0, 6 * time.Hour, 0.47, 2_000},
		{6 * time.Hour, 13 * time.Hour, 0.19, 4_000},
		{13 * time.Hour, 18 * time.Hour, 0.255, 6_000},
		{18 * time.Hour, 20 * time.Hour, 0.14, 3_000},
		{20 * time.Hour, 22 * time.Hour, 0.30, 15_000},
		{22 * time.Hour, 24 * time.Hour, 0.205, 3_000},
	} {
		const slowly = 5 * time.Minute
		d.add(Load{
			Begin: part.from, Rise: slowly, Keep: part.to - part.from - 2*slowly, Fall: slowly,
			Memory: (1 - part.available) * Total, Tasks: part.tasks,
		})
	}
}

func (d *Day) cron() {
	every(10*time.Minute, 0, 24*time.Hour, func(at time.Duration) {
		d.add(Load{Begin: at + 30*time.Second, Rise: time.Second, Keep: 5 * time.Second, Fall: time.Second, Memory: 150 * mib, Tasks: 600})
	})
	every(time.Hour, 0, 24*time.Hour, func(at time.Duration) {
		d.add(Load{Begin: at, Rise: 2 * time.Second, Keep: 20 * time.Second, Fall: time.Second, Memory: 300 * mib, Tasks: 2500})
	})
}

// rollOuts adds pods that are replaced one after the other: the new one starts while
// the old one still ends.
func (d *Day) rollOuts(random *rand.Rand) {
	for _, begin := range []time.Duration{5 * time.Hour, 12 * time.Hour, 17*time.Hour + 30*time.Minute} {
		for i := range 12 {
			at := begin + time.Duration(i)*20*time.Second
			d.add(Load{Begin: at, Rise: 500 * time.Millisecond, Keep: between(random, 2*time.Second, 15*time.Second), Fall: time.Second, Memory: 250 * mib, Tasks: 150})
		}
	}
}

func every(period, from, to time.Duration, do func(at time.Duration)) {
	for at := from; at < to; at += period {
		do(at)
	}
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}
