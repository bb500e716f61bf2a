package consumers

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Consumer is a group that holds some of the resource.
type Consumer struct {
	Group Group
	// Command is the name that most of it has.
	Command string
	// Took is the amount that the group took since the baseline, Holds the amount that it has now,
	// in bytes or tasks.
	Took, Holds float64
	// Processes is how many it has.
	Processes int
	// IsGone: it has no process any more.
	IsGone bool
}

// Certainty says how well the culprit is known.
type Certainty uint8

// The verdicts.
const (
	// NotRead means that nothing was read.
	NotRead Certainty = iota
	// Unseen means that little was taken since the first reading: processes that already ran took
	// it before, or the host was nearly full.
	Unseen
	// Many means that no consumer took a third.
	Many
	// Named means that a group took a third or more.
	Named
)

// Finding names the groups that took a resource, and how much each took.
type Finding struct {
	Resource  Resource
	Certainty Certainty
	// In is the time from when the host was last healthy until the first taker took nearly all
	// of that. 0: the only snapshot is of a host that was never seen healthy.
	In time.Duration
	// Takers are at most two groups that took a third of Taken or more, the largest first.
	Takers [2]Consumer
	// Taken is the amount that all groups took, Unowned the growth of shared memory and tmpfs, and
	// Shared the amount that these hold.
	Taken, Unowned, Shared float64
	// IsPartial: a taker may have taken more, before the first reading.
	IsPartial bool
	// Largest is the group that holds most.
	Largest Consumer
	// First is that of the Snapshot.
	First int
}

const (
	// leastShare is the part of all that there is below which what was taken explains
	// nothing.
	leastShare = 0.005
	// partial is the share of a group's growth that may have happened before the first reading
	// without being mentioned.
	partial = 0.1
)

// compare says who took what since the baseline. host is what there is now.
func (b *baseline) compare(r Resource, now *Snapshot, host Host) Finding {
	f := Finding{Resource: r, In: now.At - b.since, First: now.First}
	all := b.tallies(r, now)
	unseen, proven := b.blind(r, all)
	blind := unseen - proven
	tallies := slices.SortedFunc(maps.Values(all), func(x, y *Consumer) int {
		return cmp.Or(cmp.Compare(y.Took, x.Took), cmp.Compare(x.Group.Kind, y.Group.Kind), cmp.Compare(x.Group.Name, y.Group.Name))
	})
	var seen float64
	largest := &Consumer{}
	for _, t := range tallies {
		seen += max(0, t.Took)
		if t.Holds > largest.Holds {
			largest = t
		}
	}
	// Forked processes share pages, which count in each of them. So a group took at most what
	// the host lost, and holds at most what is in use.
	most := Consumer{Took: math.Inf(1), Holds: math.Inf(1)}
	if r == Memory {
		most = Consumer{Took: max(0, b.host.Left-host.Left), Holds: host.Total - host.Left}
	}
	f.Largest = largest.told(r, now, most)
	if r == Memory {
		f.Shared, f.Unowned = now.Shared, max(0, now.Shared-b.snapshot.Shared)
	}
	f.Taken = min(max(seen+f.Unowned, b.host.Left-host.Left-blind), most.Took)
	for i, t := range tallies[:min(len(tallies), len(f.Takers))] {
		if t.Took >= f.Taken/3 && t.Took >= blind*partial && t.Took > 0 {
			f.Takers[i] = t.told(r, now, most)
		}
	}
	least := max(1, host.Total*leastShare)
	if f.In > 0 && f.Takers[0].Took >= least {
		f.Certainty, f.IsPartial = Named, unseen > f.Takers[0].Took*partial
		return f
	}
	f.Certainty, f.Takers = Unseen, [2]Consumer{}
	if f.In > 0 && f.Taken >= least && f.Taken > blind {
		f.Certainty = Many
	}
	return f
}

// blind returns what was taken between the time when the host was last healthy and the first
// snapshot, other than by processes that were started in between: nobody saw by whom. The part of it
// that only one group can have taken, because all others together held less at the first snapshot,
// is proven. It is added to that group. That can be so of one group only, and only if all together
// held as much: the rest is the kernel's.
func (b *baseline) blind(r Resource, all map[Group]*Consumer) (blind, proven float64) {
	held, total, fresh := map[Group]float64{}, 0.0, 0.0
	if r == Memory {
		total = b.snapshot.Shared
	}
	for i := range b.snapshot.Processes {
		p := &b.snapshot.Processes[i]
		if p.Start > b.since {
			fresh += r.amount(p)
			continue
		}
		held[p.Group] += r.amount(p)
		total += r.amount(p)
	}
	blind = max(0, b.host.Left-b.atFirst.Left-fresh)
	for group, own := range held {
		if part := blind - (total - own); blind <= total && part > 0 && all[group] != nil {
			all[group].Took += part
			return blind, part
		}
	}
	return blind, 0
}

// told returns the consumer with its command, and with at most as much as most has.
func (c Consumer) told(r Resource, now *Snapshot, most Consumer) Consumer {
	c.Command, c.Took, c.Holds = now.command(r, c.Group), min(c.Took, most.Took), min(c.Holds, most.Holds)
	return c
}

// after returns the finding with the facts that only earlier findings contain: a taker that has
// ended, and how fast the first taker grew. now is the snapshot of the finding.
func (f Finding) after(before Finding, now *Snapshot) Finding {
	if before.Certainty != Named {
		return f
	}
	was := before.Takers[0]
	isGone := !slices.ContainsFunc(now.Processes, func(p Proc) bool { return p.Group == was.Group })
	switch is := slices.IndexFunc(f.Takers[:], func(c Consumer) bool { return c.Group == was.Group }); {
	case f.Certainty == Named && is == 1: // both took about as much: the order stays
		f.Takers[0], f.Takers[1] = f.Takers[1], f.Takers[0]
		f.In = before.In
	case f.Certainty == Named && is == 0:
		if f.Takers[0].Took <= was.Took*(1+partial) {
			f.In = before.In
		}
	case f.Takers[0].Took < was.Took*partial && isGone:
		f.Certainty, f.In, f.Takers = Named, before.In, before.Takers
		f.Takers[0].IsGone, f.Takers[1] = true, Consumer{}
		f.IsPartial = before.IsPartial
	}
	return f
}

// Culprit returns the finding as data.
func (f Finding) Culprit() probes.Culprit {
	var c Consumer
	switch f.Certainty {
	case Named:
		c = f.Takers[0]
	case Many:
		c.Took = f.Taken
	default:
		return probes.Culprit{}
	}
	return probes.Culprit{
		Kind: c.Group.Kind.String(), Name: c.Group.Name, Command: c.Command, Took: c.Took, Seconds: f.In.Seconds(), Holds: c.Holds, IsGone: c.IsGone,
		TookText: f.text(c.Took) + " in " + trend.TimeText(f.In),
	}
}
