package scale

import (
	"fmt"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

// A write of conditions that comes when a heartbeat is due is none that the restart
// made.
func TestEarly(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var all log
	for i, c := range []struct {
		node string
		at   time.Duration
	}{{"a", 0}, {"b", time.Minute}, {"a", 4 * time.Minute}, {"b", 5*time.Minute + 40*time.Second}, {"a", 9 * time.Minute}} {
		r := cluster.Request{AuditID: fmt.Sprint(i), Verb: "patch", RequestURI: "/api/v1/nodes/" + c.node + "/status", RequestReceivedTimestamp: begin.Add(c.at)}
		r.ObjectRef.Resource, r.ObjectRef.Subresource = "nodes", "status"
		r.User.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {c.node}}
		all = append(all, r)
	}
	if got := all[1:].early(all); len(got) != 1 || got[0].AuditID != "2" {
		t.Errorf("%v", got)
	}
}
