package verdict

import "fmt"

// relative compares a class that fails here with the peers' reports of that class. A node whose
// pods cannot reach DNS should get no pods while the pods of other nodes can.
type relative struct {
	compared
	// found is the result of the newest round, with this many peers.
	found Result
	asked int
}

// add adds a round. A host does not query the DNS pods of its Node. If a part of the fleet is gone
// with most of the DNS pods, the host of the last pod reaches none while its peers reach that pod.
// So pods are compared only while this host reaches most of its peers. A class fails here alone if
// enough peers know the same targets and all report them as healthy: a fault that reaches one host
// after another reaches some peer soon.
func (c *relative) add(r *Round) {
	c.found, c.heard, c.asked = r.Results[c.class], opinions{}, len(r.Peers)
	var same opinions
	for i := range r.Peers {
		p := &r.Peers[i]
		if !p.Reached || p.Answer == nil {
			continue
		}
		well, known := c.reportOf(p.Answer, len(c.found.Pods) == 1)
		c.heard.add(well, known, p.Answer.Maintenance)
		well, known = c.reportOf(p.Answer, true)
		same.add(well, known, p.Answer.Maintenance)
	}
	n := reachOf(r.Peers)
	reachesMost := isMost(n.reached, n.all)
	isAlone := reachesMost && same.areEnough(c.asked) && same.well == same.know
	c.take(c.found.Outcome == Failed, (c.class != Pods || reachesMost) && c.isWellElsewhere(), isAlone, r.At)
}

// isWellElsewhere reports whether enough peers know the class, and most of these report it well.
func (c *relative) isWellElsewhere() bool { return c.heard.areWitnesses(c.asked) }

// reportOf returns what a peer reports of the class, or of the same DNS pods that this host asked.
// The host of one of two pods asks the other one alone, and its peers ask both: then what they say
// of that one counts. It is the pod that is gone where they do not reach it either, and one on a
// host without power stays listed for most of a minute.
func (c *relative) reportOf(a *Answer, ofSame bool) (well, known bool) {
	if c.class != Pods || !ofSame {
		well, known = a.Classes[c.class]
		return well, known
	}
	for pod := range c.found.Pods {
		there, isKnown := a.Pods[pod]
		well, known = well || there, known || isKnown
	}
	return well, known
}

func (c *relative) String() string {
	text, detail := fmt.Sprintf("%s fails here", c.class), c.found.Detail
	if !c.here.now() && !c.found.Never {
		text, detail = fmt.Sprintf("%s failed here a moment ago", c.class), "now: "+detail
	}
	if c.found.Detail != "" {
		text += " (" + detail + ")"
	}
	if len(c.found.Pods) == 1 {
		return fmt.Sprintf("%s; %d of %d peers that ask this pod reach it", text, c.heard.well, c.heard.know)
	}
	return fmt.Sprintf("%s; %d of %d peers that know it report it as healthy", text, c.heard.well, c.heard.know)
}
