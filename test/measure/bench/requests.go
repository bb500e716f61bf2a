package main

import (
	"fmt"
	"net/http"
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

// checkRights is an error where the API server forbade the user a request: the figures
// of an agent that lacks rights are not those of one that is installed.
func checkRights(requests []cluster.Request, user string) error {
	for _, r := range requests {
		if r.User.Username == user && r.ResponseStatus.Code == http.StatusForbidden {
			return fmt.Errorf("%s was forbidden to %s %s", user, r.Verb, r.RequestURI)
		}
	}
	return nil
}
