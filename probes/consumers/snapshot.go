package consumers

import (
	"slices"
	"time"
)

// Resource is the scarce resource.
type Resource uint8

// The resources whose consumers are known.
const (
	Memory Resource = iota
	Tasks
)

// amount returns what a process holds of the resource, in bytes or tasks.
func (r Resource) amount(p *Proc) float64 {
	if r == Tasks {
		return float64(p.Tasks)
	}
	return float64(p.Bytes)
}

// Host is the amount of the resource on the host, in bytes or tasks.
type Host struct{ Left, Total float64 }

// Snapshot is the processes of a host at one time.
type Snapshot struct {
	At time.Duration // when reading began, since the host's boot
	// Processes by rising PID.
	Processes []Proc
	// Shared is the memory of tmpfs and of shared memory, in bytes. It has no owner.
	Shared float64
	// First is how many processes were read, where there are more; 0: all.
	First int
}

// baseline is what was there when the host was healthy.
type baseline struct {
	snapshot *Snapshot
	// since is when the host was last healthy, and host what there was then.
	since time.Duration
	host  Host
	// atFirst is what there was when the snapshot was taken.
	atFirst Host
}

// holds returns what the process held at the baseline: nothing, if it was started since.
// Identifiers are given again, so the time of the start belongs to them.
func (b *baseline) holds(r Resource, p *Proc) float64 {
	if p.Start > b.since {
		return 0
	}
	q := b.snapshot.find(p)
	if q == nil {
		return 0
	}
	return r.amount(q)
}

// tallies returns what each group has, and took since the baseline. The growth of a process counts
// for the group in which it is now. The memory of a process that has ended counts as released by
// its group.
func (b *baseline) tallies(r Resource, now *Snapshot) map[Group]*Consumer {
	all := map[Group]*Consumer{}
	of := func(g Group) *Consumer {
		t := all[g]
		if t == nil {
			t = &Consumer{Group: g}
			all[g] = t
		}
		return t
	}
	for i := range now.Processes {
		p := &now.Processes[i]
		t, amount := of(p.Group), r.amount(p)
		t.Processes++
		t.Holds += amount
		t.Took += amount - b.holds(r, p)
	}
	for i := range b.snapshot.Processes {
		p := &b.snapshot.Processes[i]
		if p.Start <= b.since && now.find(p) == nil {
			of(p.Group).Took -= r.amount(p)
		}
	}
	return all
}

// find returns a process as it is in the snapshot; nil: it is not there.
func (s *Snapshot) find(p *Proc) *Proc {
	at, found := slices.BinarySearchFunc(s.Processes, p.PID, func(q Proc, pid int32) int { return int(q.PID) - int(pid) })
	if !found || s.Processes[at].Start != p.Start {
		return nil
	}
	return &s.Processes[at]
}

// command returns the process name with the largest part of a group's memory, and of several the
// first in the alphabet.
func (s *Snapshot) command(r Resource, g Group) (name string) {
	amounts := map[string]float64{}
	for i := range s.Processes {
		if p := &s.Processes[i]; p.Group == g {
			amounts[p.Command] += r.amount(p)
		}
	}
	most := -1.0
	for command, amount := range amounts {
		if amount > most || amount == most && command < name {
			name, most = command, amount
		}
	}
	return name
}
