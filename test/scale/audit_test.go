package scale

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/taintlet/taintlet/test/cluster"
)

// auditRules keep what became of each write of a Node or a Lease, and who made
// every other request when.
const auditRules = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources: [{group: "", resources: [nodes, nodes/status]}, {group: coordination.k8s.io, resources: [leases]}]
- level: Metadata
`

// startAPIServer starts an API server with an audit log, and no controllers.
// Further arguments are those of the API server.
func startAPIServer(t *testing.T, args ...string) *cluster.Cluster {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	rules := filepath.Join(t.TempDir(), "audit.yaml")
	if err := os.WriteFile(rules, []byte(auditRules), 0o600); err != nil {
		t.Fatal(err)
	}
	return cluster.New(t, cluster.Options{
		WithoutControllerManager: true, WithoutScheduler: true, AuditLog: true,
		Args: map[string][]string{cluster.APIServer: append(args, "--audit-policy-file="+rules)},
	})
}

// request is what matters here of an audit.k8s.io/v1 Event.
type request struct {
	Stage, Verb string
	User        struct{ Username string }
	ObjectRef   struct{ Resource, Subresource, Name string }

	ResponseStatus                struct{ Code int }
	RequestObject, ResponseObject json.RawMessage

	RequestReceivedTimestamp time.Time
}

// readAudit returns all requests that have ended, in the order in which they
// came. The last of them is one of its own, so that none is missing.
func readAudit(t *testing.T, c *cluster.Cluster) []request {
	t.Helper()
	last := "last-" + rand.String(10)
	if _, err := c.Client().CoreV1().ConfigMaps("default").Get(t.Context(), last, metav1.GetOptions{}); err == nil {
		t.Fatal("a ConfigMap that nobody made is there")
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		log, err := os.ReadFile(c.AuditLogPath())
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(log, []byte(last)); at >= 0 && bytes.IndexByte(log[at:], '\n') >= 0 {
			return parseAudit(t, log)
		}
		if time.Now().After(deadline) {
			t.Fatal("the audit log lacks the last request")
		}
	}
}

func parseAudit(t *testing.T, log []byte) []request {
	t.Helper()
	var requests []request
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("audit log: %v: %.200s", err, lines.Bytes())
		}
		requests = append(requests, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(requests, func(a, b request) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp) })
	return requests
}

// write is a Node or a Lease as a write left it.
type write[T any] struct {
	version  uint64
	received time.Time // by the API server
	name     string
	object   T
	body     []byte // of the request
}

// writesOf returns the successful writes of a resource in the order in which
// they took effect: resource versions of one cluster are counted together. A
// request that changed nothing is none.
func writesOf[T any](t *testing.T, requests []request, resource string) []write[T] {
	t.Helper()
	var writes []write[T]
	for _, r := range requests {
		if r.ObjectRef.Resource != resource || r.ResponseStatus.Code/100 != 2 || r.ResponseObject == nil || r.Verb == "delete" {
			continue
		}
		w := write[T]{received: r.RequestReceivedTimestamp, name: r.ObjectRef.Name, body: r.RequestObject}
		var meta metav1.PartialObjectMetadata
		for _, into := range []any{&meta, &w.object} {
			if err := json.Unmarshal(r.ResponseObject, into); err != nil {
				t.Fatalf("audit log: %v: %s", err, r.ResponseObject)
			}
		}
		w.name, w.version = meta.Name, versionNumber(t, meta.ResourceVersion)
		writes = append(writes, w)
	}
	slices.SortStableFunc(writes, func(a, b write[T]) int { return cmp.Compare(a.version, b.version) })
	return slices.CompactFunc(writes, func(a, b write[T]) bool { return a.version == b.version })
}

func versionNumber(t *testing.T, text string) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}
