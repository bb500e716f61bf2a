package scale

import (
	"net/http"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/bed"

	"github.com/taintlet/taintlet/test/cluster"
)

// window is a part of the run.
type window struct{ From, To time.Time }

func (w window) has(at time.Time) bool { return !at.Before(w.From) && at.Before(w.To) }

func (w window) hours() float64 { return w.To.Sub(w.From).Hours() }

// log is the API server's audit log.
type log []cluster.Request

// where returns the requests for which it holds.
func (l log) where(holds func(cluster.Request) bool) (some log) {
	for _, r := range l {
		if holds(r) {
			some = append(some, r)
		}
	}
	return some
}

// of returns a user's requests within a window.
func (l log) of(user string, w window) log {
	return l.where(func(r cluster.Request) bool { return r.User.Username == user && w.has(r.RequestReceivedTimestamp) })
}

// only returns the requests with that verb and resource.
func (l log) only(verb, resource string) log {
	return l.where(func(r cluster.Request) bool { return r.Verb == verb && r.Resource() == resource })
}

// since returns of each agent what it asked for since a time of its own.
func (l log) since(begin map[string]time.Time) log {
	return l.where(func(r cluster.Request) bool {
		at, known := begin[nodeOf(r)]
		return known && !r.RequestReceivedTimestamp.Before(at)
	})
}

// done returns the requests that were answered with success.
func (l log) done() log {
	return l.where(func(r cluster.Request) bool { return r.ResponseStatus.Code/100 == 2 })
}

// byKind counts requests by verb and resource.
func (l log) byKind() map[string]int {
	counts := map[string]int{}
	for _, r := range l {
		kind := r.Verb + " " + r.Resource()
		if r.ObjectRef.Resource == "endpointslices" && r.ObjectRef.Namespace != bed.Namespace {
			kind += " of " + r.ObjectRef.Namespace
		}
		counts[kind]++
	}
	return counts
}

// byNode counts requests by the agent's Node.
func (l log) byNode() map[string]int {
	counts := map[string]int{}
	for _, r := range l {
		counts[nodeOf(r)]++
	}
	return counts
}

// nodeOf returns the Node that the token of the request is bound to.
func nodeOf(r cluster.Request) string {
	return strings.Join(r.User.Extra["authentication.kubernetes.io/node-name"], ",")
}

// peak is the most requests within one second.
func (l log) peak() int {
	counts, most := map[int64]int{}, 0
	for _, r := range l {
		second := r.RequestReceivedTimestamp.Unix()
		counts[second]++
		most = max(most, counts[second])
	}
	return most
}

// refused counts answers 429, and failed those of 500 and more.
func (l log) refused() (tooMany, failed int) {
	for _, r := range l {
		switch code := r.ResponseStatus.Code; {
		case code == http.StatusTooManyRequests:
			tooMany++
		case code >= http.StatusInternalServerError:
			failed++
		}
	}
	return tooMany, failed
}

// soonest is how long after the last write of its conditions an agent's heartbeat
// comes at the earliest: 5 min - 10 %.
const soonest = 270 * time.Second

// early returns the writes of conditions that came too soon to be a heartbeat, by all
// writes of the agents.
func (l log) early(all log) log {
	early, last := map[string]bool{}, map[string]time.Time{}
	for _, r := range all.only("patch", "nodes/status") {
		node := nodeOf(r)
		early[r.AuditID] = r.RequestReceivedTimestamp.Sub(last[node]) < soonest
		last[node] = r.RequestReceivedTimestamp
	}
	return l.where(func(r cluster.Request) bool { return early[r.AuditID] })
}

// heartbeats is how often an hour an agent refreshes its conditions, by the time
// between two refreshes of one Node. So it does not matter when the agents started.
func (l log) heartbeats() float64 {
	last := map[string]time.Time{}
	intervals, total := 0, time.Duration(0)
	for _, r := range l.only("patch", "nodes/status") {
		node := nodeOf(r)
		if before, known := last[node]; known {
			intervals++
			total += r.RequestReceivedTimestamp.Sub(before)
		}
		last[node] = r.RequestReceivedTimestamp
	}
	if intervals == 0 {
		return 0
	}
	return float64(intervals) / total.Hours()
}
