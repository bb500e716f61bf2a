package decide

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// aloneFor is how long an agent that finds no peer waits for one: its first list may be
// older than the agents of other Nodes that register at the same time. After 30 s it
// reads the list again.
const aloneFor = 45 * time.Second

// IsStarting reports whether the Node has the start-up taint and waits for its first
// verdict.
func (s *State) IsStarting() bool { return !s.startup.since.IsZero() }

// pairs are those that the taint can be; none where no taint is configured.
func (c Startup) pairs() []taints.Pair {
	if c.Taint == "" {
		return nil
	}
	return []taints.Pair{{Key: c.Taint, Effect: taints.NoSchedule}, {Key: c.Taint, Effect: taints.NoExecute}}
}

// followStartup decides whether the taint with which the Node has registered is to go:
// once, with a token, when every condition was found to be OK by this process.
func (s *State) followStartup(t *turn) {
	u, isFreed := &s.startup, s.startup.freed == s.ledger.uid
	if isFreed {
		u.isGone = u.isGone || s.ledger.hasLanded()
	}
	if isFreed || !slices.ContainsFunc(t.policy.Startup.pairs(), t.in.Node.Has) {
		u.since = time.Time{}
		return
	}
	if u.since.IsZero() {
		u.since, u.notified = t.now, false
	}
	if u.heard == 0 && t.in.Peers.Known > 0 {
		u.heard = t.in.Peers.Rounds + roundsToHear
	}
	waits := s.startupWaits(t)
	if len(waits) == 0 {
		if !s.upkeep.take(t.policy.Upkeep, t.now) {
			return
		}
		t.notify(Notice{Kind: StartupTaintRemoved, Message: describe.StartupRemoved(t.policy.Startup.Taint, t.now.Sub(u.since))})
		s.startup = startup{freed: s.ledger.uid}
		return
	}
	if !u.notified && t.now.Sub(u.since) >= t.policy.Startup.Timeout.Duration {
		u.notified = true
		t.notify(Notice{Kind: StartupTaintStays, Message: describe.StartupStays(t.policy.Startup.Taint, t.now.Sub(u.since), waits)})
	}
}

// startupPairs are those that may be removed from the Node because it has started.
func (s *State) startupPairs(t *turn) []taints.Pair {
	if s.startup.freed != s.ledger.uid || s.startup.isGone {
		return nil
	}
	return t.policy.Startup.pairs()
}

// startupWaits names each condition that the start-up taint waits for, and the reason.
func (s *State) startupWaits(t *turn) (waits []string) {
	for i := range s.conditions {
		c := &s.conditions[i]
		if missing := s.awaits(t, c); missing != "" {
			waits = append(waits, string(c.name)+" ("+missing+"): "+cmp.Or(c.last.Message, "no sample yet"))
		}
	}
	return waits
}

// awaits says why the start-up taint waits for a condition; empty: it does not. A condition that
// the fleet brake holds back keeps no Node closed, as it gets no taint either. A sample that is
// near a threshold is OK. A sample that is not yet sure (without a threshold to pass) is not OK.
// Nor is a sample of a probe with a check that has not been healthy since the start.
func (s *State) awaits(t *turn, c *condition) string {
	switch o := c.last; {
	case c.debounce.Level > probes.OK:
		return "it is " + c.debounce.Level.String()
	case c.onset.braked != "":
		return ""
	case o.Level != probes.OK:
		return "not known to be OK"
	case len(o.NeverHealthy) > 0:
		return "no healthy check yet of " + strings.Join(o.NeverHealthy, ", ")
	case o.Hysteresis && o.Clears == "":
		return "not yet sure"
	}
	if configured, _ := t.policy.Condition(c.name); configured.AsksPeers {
		return s.lacksPeers(t)
	}
	return ""
}

// lacksPeers says what is missing before a good verdict is about the peers too:
// they are known, and were asked twice since. The first round may have begun before.
func (s *State) lacksPeers(t *turn) string {
	u, peers := &s.startup, t.in.Peers
	switch {
	case peers.Known < 0:
		return "the list of peers has not been read yet"
	case u.heard == 0 && t.now.Sub(u.since) < aloneFor:
		return "no peer has been found yet"
	case peers.Rounds < u.heard:
		return "the peers have not been queried twice yet"
	}
	return ""
}
