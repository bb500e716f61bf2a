package decide

import (
	"errors"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/taints"
)

// maxUnasked bounds the length of the pairs that the record names although no
// rule asks for them, so that a forged list cannot make it too long to be read.
const maxUnasked = 1000

// upToMax returns the first of the pairs, as many as have maxUnasked bytes together.
func upToMax(pairs []taints.Pair) []taints.Pair {
	length := maxUnasked
	for i, pair := range pairs {
		if length -= len(pair.String()); length < 0 {
			return pairs[:i]
		}
	}
	return pairs
}

// ledger is what was decided for the Node, and how much of it is there.
type ledger struct {
	// desired are the taints that are to stand on the Node. Just after a start they are
	// those that the record asks for.
	desired []DesiredTaint
	// decided is what the last revision remembers of the Node. isChanged: it stands for other taints
	// than desired. isOurs: it is this process's, and for this Node object.
	decided           memory
	isChanged, isOurs bool
	// revision is that of the last decision, landed the newest that was seen on
	// the Node. 0 is none.
	revision, landed uint64
	decidedAt        time.Time
	// uid is that of the Node.
	uid string
	// owned are our pairs on the Node when it was last seen with our record;
	// lost are those of them that others removed since. They count once.
	owned, lost []taints.Pair
	// setAt is when this process most recently saw a taint on the Node that it had set.
	setAt time.Time
	// dropped are pairs that this process desired until a new configuration
	// stopped asking for them. They may be removed: this process knows
	// that they are its own, and does not have to believe the record.
	dropped []taints.Pair
	// policy is the configuration in force, since when.
	policy      *Policy
	policySince time.Time
	// unrecorded: the record does not fit beside the Node's other annotations. planned are then our
	// pairs once what revision plannedFor desires has landed. Only the first answer counts: as soon
	// as the watch shows them, they look like foreign pairs.
	unrecorded bool
	planned    []taints.Pair
	plannedFor uint64
}

// follow takes in the configuration. It remembers our pairs, on the Node or on
// their way to it, that a new configuration does not know.
func (l *ledger) follow(policy *Policy, now time.Time) {
	before := l.policy
	if before == policy {
		return
	}
	l.policy, l.policySince = policy, now
	if before == nil {
		return
	}
	ours := slices.Clone(l.owned)
	for _, d := range l.desired {
		ours = append(ours, d.Pair)
	}
	for _, pair := range ours {
		if before.Produces(pair) && !policy.Produces(pair) && !slices.Contains(l.dropped, pair) {
			l.dropped = append(slices.Clip(l.dropped), pair)
		}
	}
}

// hasLanded reports whether the last decision was seen on the Node.
func (l *ledger) hasLanded() bool { return reached(l.landed, l.revision) }

// land takes in the record that the Node carries, as it was seen then by the process of that name.
func (l *ledger) land(node *Node, name string, then time.Time) {
	seen := node.record.Revision
	// What is ours is read once for each revision: a forged list costs nothing.
	if node.recordErr == nil && seen > 0 && seen != l.landed && reached(seen, l.landed) {
		isSet := func(d DesiredTaint) bool { // not there before, or lost since
			return node.Has(d.Pair) && (!slices.Contains(l.owned, d.Pair) || slices.Contains(l.lost, d.Pair))
		}
		if node.record.Instance.Name == name && slices.ContainsFunc(l.desired, isSet) {
			l.setAt = then
		}
		owned := l.credible(node.record.Owned)
		if seen != l.revision { // nor does one with another revision
			owned = l.stillOwned(node, owned)
		}
		l.landed, l.owned, l.lost = seen, owned, nil
	}
	// A revision that is not ours is an older instance's. Differences are then repaired within the
	// budget, so that two agents cannot outbid each other.
	if l.hasLanded() {
		l.revision = l.landed
	}
}

// settle takes in the answer of a write. It says which pairs are ours even where a newer version of
// the Node, with a damaged record, was seen first. A record that does not fit cannot say so: then the
// planned pairs are ours.
func (l *ledger) settle(in Inputs, name string, now time.Time) {
	if in.Answer != nil && in.Answer.UID == l.uid {
		l.land(Read(in.Answer), name, now)
	}
	if in.Written && l.unrecorded {
		l.landed, l.owned, l.lost = l.revision, l.planned, nil
	}
}

// credible returns those pairs of a record that a rule can ask for, and as many
// of the others as a record of ours would name. A record can name thousands.
func (l *ledger) credible(pairs []taints.Pair) []taints.Pair {
	var asked, others []taints.Pair
	for _, pair := range pairs {
		switch {
		case !l.canProduce(pair):
			others = append(others, pair)
		case !slices.Contains(asked, pair):
			asked = append(asked, pair)
		}
	}
	return append(asked, upToMax(others)...)
}

// canProduce reports whether the configuration or a built-in rule can ask for the
// pair, or this process itself did so by an earlier configuration.
func (l *ledger) canProduce(pair taints.Pair) bool {
	return l.policy.Produces(pair) || slices.Contains(l.dropped, pair)
}

// stillOwned adds to the pairs those that were ours before and are on the Node.
func (l *ledger) stillOwned(node *Node, pairs []taints.Pair) []taints.Pair {
	for _, pair := range l.owned {
		if !slices.Contains(pairs, pair) && node.Has(pair) {
			pairs = append(slices.Clip(pairs), pair)
		}
	}
	return pairs
}

// reached reports whether revision a is b or a later one. Counting goes round
// (RFC 1982), so that no forged revision can bring it to an end. 0 is none.
func reached(a, b uint64) bool {
	return b == 0 || a != 0 && int64(a-b) >= 0 //nolint:gosec // the wrap is meant
}

// unasked returns those of our pairs that stand on the Node and that no rule
// asks for. They are not removed, since the list may be forged, and not
// forgotten: a configuration with their rule removes them.
func (l *ledger) unasked(node *Node, ours []taints.Pair) []taints.Pair {
	var pairs []taints.Pair
	for _, pair := range ours {
		if !l.canProduce(pair) && !slices.Contains(pairs, pair) && node.Has(pair) {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// mayRemove returns the pairs that may be replaced or removed. They are in
// the record, and a rule asks for them or did so. A kept pair that is there
// already is taken over: the lifecycle controller put it there and would
// remove it. A pair that is not desired any more while the kubelet's own
// condition asks for it is left to that controller.
func (l *ledger) mayRemove(node *Node) []taints.Pair {
	var pairs []taints.Pair
	for _, pair := range l.owned {
		if l.canProduce(pair) && (isDesired(l.desired, pair) || !taints.ControllerWants(node.Node, pair)) {
			pairs = append(pairs, pair)
		}
	}
	for _, d := range l.desired {
		pair := d.Pair
		if d.Via == taints.Kept && node.Has(pair) && !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// active says whether this process may decide for its Node. No other agent runs beside it, as
// it has the lock of its host. But an earlier one may have written a record that this one has
// not read yet. Or the record is a newer release's.
type active struct {
	// name is that of this process.
	name string
	// restored: a Node, and so its record, has been read. Before that evidence
	// is collected, but nothing is decided.
	restored bool
	// source is the revision of that record; 0: there was none. isSeen: a record of this
	// process was seen on the Node.
	source uint64
	isSeen bool
	// readOnly: the newest version of the Node has a newer release's record. The
	// Node is left as it is.
	readOnly bool
}

// mayTakeOver reports whether this process takes the Node over with all that its record
// remembers. It does so at the start, and when an earlier one has decided more than this one
// has read.
func (s *State) mayTakeOver(t *turn) bool {
	a, node := &s.active, t.in.Node
	if errors.Is(node.recordErr, errNewer) {
		s.leaveToNewerRelease(t)
		return false
	}
	if a.readOnly {
		a.readOnly = false
		t.notify(Notice{Kind: Active, Message: describe.RecordReadable(a.name)})
		return true
	}
	a.isSeen = a.isSeen || node.record.Instance.Name == a.name
	return !a.restored || s.isBehind(node.record)
}

// isBehind reports whether the record has decisions of other processes that this one has not taken
// over. It has decided nothing yet, or it decided on an old version of the Node. The first answer
// after a start may come from an API server whose cache is behind, and the last write of an agent
// that ended may land after that answer.
func (s *State) isBehind(r Record) bool {
	a := &s.active
	isLater := !a.isSeen && r.Revision != a.source && reached(r.Revision, a.source)
	return r.Revision > 0 && (s.ledger.revision == 0 || isLater)
}

// leaveToNewerRelease leaves the Node as it is while its record is a newer release's: this one may
// not undo what it does not understand. The decisions of this process are dropped: it later reads
// everything from the record, as after a start.
func (s *State) leaveToNewerRelease(t *turn) {
	if s.active.readOnly {
		return
	}
	s.active = active{name: s.active.name, readOnly: true}
	s.ledger = ledger{uid: s.ledger.uid, policy: s.ledger.policy, policySince: s.ledger.policySince, owned: s.ledger.owned} // the record may be gone when it is over
	s.writes = conditionWrites{refresh: s.writes.refresh, updates: s.writes.updates}
	for i := range s.conditions {
		s.conditions[i].onset, s.conditions[i].fault = onset{}, fault{}
	}
	s.repairEndedAt = time.Time{}
	t.notify(Notice{Kind: RecordRefused, Reason: "NewerRecord", Message: describe.RecordNewer})
}

// observeNode takes in a version of the Node: whether it is a new object, and which decision has
// landed on it.
func (s *State) observeNode(t *turn) {
	l, node := &s.ledger, t.in.Node
	if node.UID != l.uid {
		l.uid, l.owned, l.lost, l.landed, l.isOurs = node.UID, nil, nil, 0, false
		s.startup = startup{}
		s.writes.told, s.writes.isPending = nil, false
	}
	l.land(node, s.active.name, t.in.NodeAt)
}
