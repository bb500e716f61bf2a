package main

import (
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

// countRequests counts, by user, the requests that the API server received
// between two moments. A watch counts when it begins.
func countRequests(requests []cluster.Request, begin, end time.Time) map[string]int {
	counts, counted := map[string]int{}, map[string]bool{}
	for _, r := range requests {
		// A watch has two entries: of its begin and of its end.
		if !counted[r.AuditID] && r.RequestReceivedTimestamp.After(begin) && r.RequestReceivedTimestamp.Before(end) {
			counted[r.AuditID] = true
			counts[r.User.Username]++
		}
	}
	return counts
}
