package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// census is what the Nodes that were asked about say of themselves.
type census struct {
	// count of them count. Of these, well do not suspect themselves, and there renew
	// their Leases.
	count, well, there int
	excused            []string // for people
}

// census counts those who answered what was asked, and remembers who does not count.
// Where any Lease is known, a Node whose Lease is not does not count: it may be
// without power, and Ready for minutes.
func (s *suspicion) census(standings []Standing) (c census) {
	byNode := make(map[string]Standing, len(standings))
	isKnown := false
	for _, standing := range standings {
		byNode[standing.Node] = standing
		isKnown = isKnown || standing.LeaseKnown
	}
	excused := map[string]bool{}
	for _, node := range s.ask {
		standing, exists := byNode[node]
		excuse := standing.Excuse
		switch {
		case !exists:
			excuse = "does not exist"
		case excuse == "" && !standing.Suspects && !standing.LeaseKnown && isKnown && slices.Contains(s.noted, node):
			excuse = "its Lease is not known"
		}
		if excuse != "" {
			excused[node] = true
			c.excused = append(c.excused, node+" "+excuse)
			continue
		}
		c.count++
		if !standing.Suspects {
			c.well++
		}
		if standing.LeaseKnown {
			c.there++
		}
	}
	for node := range s.excused {
		excused[node] = excused[node] || !slices.Contains(s.ask, node)
	}
	s.excused = excused
	return c
}

// mostExcused are named.
const mostExcused = 3

// String says what was found, for people.
func (c census) String() string {
	text := fmt.Sprintf("%d of %d others are well", c.well, c.count)
	if len(c.excused) == 0 {
		return text
	}
	text += "; not counted: " + strings.Join(c.excused[:min(mostExcused, len(c.excused))], ", ")
	if more := len(c.excused) - mostExcused; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
