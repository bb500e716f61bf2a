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

// countStandings counts those of the asked Nodes that answered, by what they say. Where
// any Lease is known, a Node whose Lease was noted and is not known does not count: it
// may be without power, and Ready for minutes. excused has those that do not count.
func countStandings(asked, noted []string, standings []Standing) (c census, excused map[string]bool) {
	byNode := make(map[string]Standing, len(standings))
	isKnown := false
	for _, standing := range standings {
		byNode[standing.Node] = standing
		isKnown = isKnown || standing.LeaseKnown
	}
	excused = map[string]bool{}
	for _, node := range asked {
		standing, exists := byNode[node]
		excuse := standing.Excuse
		switch {
		case !exists:
			excuse = "does not exist"
		case excuse == "" && !standing.Suspects && !standing.LeaseKnown && isKnown && slices.Contains(noted, node):
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
	return c, excused
}

// areAllWell reports whether none that counts suspects itself, and enough of those whose
// Leases were noted are there.
func (c *census) areAllWell(noted int) bool {
	return c.well == c.count && c.there >= fewestPeers && 2*c.there > noted
}

// mostExcused are named.
const mostExcused = 3

// String says what was found, for people.
func (c census) String() string {
	text := fmt.Sprintf("%d of %d others are healthy", c.well, c.count)
	if len(c.excused) == 0 {
		return text
	}
	text += "; not counted: " + strings.Join(c.excused[:min(mostExcused, len(c.excused))], ", ")
	if more := len(c.excused) - mostExcused; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
