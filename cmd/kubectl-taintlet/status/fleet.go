package status

import (
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
)

// DefaultSilentAfter is how old the last sign of an agent may be: two and a half
// heartbeats of the default configuration, so that one may be lost.
const DefaultSilentAfter = 12*time.Minute + 30*time.Second

// Fleet is what is known of all Nodes. It keeps rows and no Node, and of a Node that
// is well its name only.
type Fleet struct {
	reader *Reader
	// names are the Nodes that were asked for; empty: all.
	names []string
	// silentAfter is how old the last sign may be. 0: any age.
	silentAfter time.Duration
	nodes       map[string]Node
}

// NewFleet returns a Fleet that knows no Node.
func NewFleet(names []string, silentAfter time.Duration) *Fleet {
	return &Fleet{reader: NewReader(), names: names, silentAfter: silentAfter, nodes: map[string]Node{}}
}

// Reset forgets all Nodes.
func (f *Fleet) Reset() { clear(f.nodes) }

// Add takes in a Node as it is now.
func (f *Fleet) Add(node *taints.Node) {
	if len(f.names) > 0 && !slices.Contains(f.names, node.Name) {
		return
	}
	n := f.reader.Read(node)
	if len(f.names) == 0 {
		n.Conditions = notWell(n.Conditions)
	}
	f.nodes[strings.Clone(node.Name)] = n
}

// notWell copies what is to be shown, so that nothing else stays in memory.
func notWell(all []Condition) []Condition {
	var some []Condition
	for _, c := range all {
		if !c.isWell() {
			some = append(some, c)
		}
	}
	return some
}

// Remove forgets a Node.
func (f *Fleet) Remove(name string) { delete(f.nodes, name) }

// Has reports whether the Node is known.
func (f *Fleet) Has(name string) bool {
	_, found := f.nodes[name]
	return found
}

// Report says how the Fleet is at that time.
func (f *Fleet) Report(now time.Time) Report {
	r := Report{APIVersion: config.APIVersion, Kind: Kind, Time: now.UTC().Truncate(time.Second), Nodes: []Node{}}
	for _, n := range f.nodes {
		n.State, n.asked = f.stateAt(n, now), len(f.names) > 0
		r.Summary.count(n, now)
		isShown := n.State != Well && n.State != NoAgent || n.Paused != "" || n.asked
		if isShown {
			r.Nodes = append(r.Nodes, n)
		}
	}
	slices.SortFunc(r.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// stateAt is the State with silence taken into account.
func (f *Fleet) stateAt(n Node, now time.Time) State {
	if n.State != NoAgent && f.silentAfter > 0 && (n.LastSign == nil || now.Sub(*n.LastSign) > f.silentAfter) {
		return Silent
	}
	return n.State
}

func (s *Summary) count(n Node, now time.Time) {
	s.Nodes++
	if n.State == NoAgent {
		s.WithoutAgent++
	} else {
		s.Agents++
	}
	if n.Paused != "" {
		s.Paused++
	}
	switch n.State {
	case Well:
		s.Well++
	case Tainted:
		s.Tainted++
	case Untainted:
		s.Untainted++
	case Unknown:
		s.Unknown++
	case Silent:
		s.Silent++
		if n.LastSign != nil {
			s.SilentSeconds = max(s.SilentSeconds, int64(now.Sub(*n.LastSign)/time.Second))
		}
	}
}

// IsWell reports whether there are agents and all are well. Of Nodes that were asked
// for by name, each has to have one.
func (f *Fleet) IsWell(r Report) bool {
	return r.Summary.Agents > 0 && r.Summary.Well == r.Summary.Agents && (len(f.names) == 0 || r.Summary.WithoutAgent == 0)
}
