package security

import "testing"

// policyAttacks have a stolen token try what the admission policies are to deny: too much, too
// often the same, somebody else's, and who wrote what. It is that of the agent of another
// Node, and the attacked agent shares its user and priority levels.
func policyAttacks() []attack {
	return []attack{
		{name: "messages of up to 1.4 MB in conditions", guarded: true, run: tries(conditionBounds),
			what: "an agent's token writes conditions with long messages and reasons"},
		{name: "20,000 duplicates of a condition", guarded: true, run: tries(duplicates),
			what: "an agent's token writes a condition twice and 20,000 times, and 9,000 taints"},
		{name: "record and held fill the annotations", guarded: true, run: tries(annotationBounds),
			what: "an agent's token writes long values into its own two annotations"},
		{name: "Events of up to 1.4 MB", guarded: true, run: tries(eventBoundAttempts),
			what: "an agent's token writes long Events"},
		{name: "what belongs to others", guarded: true, run: tries(taintAttempts, metadataAttempts, conditionAttempts, identityAttempts),
			what: "an agent's token writes others' taints, labels, annotations and conditions, and another Node"},
		{name: "Events in others' names", guarded: true, run: tries(eventAttempts),
			what: "an agent's token writes Events of other components and about other objects"},
		{name: "managedFields emptied, forged, filled", guarded: true, run: tries(managerAttempts),
			what: "an agent's token writes who manages which field"},
		{name: "taintlet-cleanup-stale sets something", guarded: true, run: tries(cleanerAttempts),
			what: "the token of the hourly cleanup sets what it may only remove"},
	}
}

// tries makes each attempt of the lists.
func tries(lists ...func() []attempt) func(*testing.T, *scene) (int, int) {
	return func(t *testing.T, c *scene) (attempts, denied int) {
		var n count
		for _, list := range lists {
			for _, a := range list() {
				n.add(a.isDenied(t, c.stolen))
			}
		}
		return n.attempts, n.denied
	}
}
