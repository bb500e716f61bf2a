package measure

import (
	"cmp"
	"encoding/json"
	"errors"
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

// readAudit returns all requests that have ended, in the order in which they
// came. The last of them is one of its own, so that none is missing.
func readAudit(t *testing.T, c *cluster.Cluster) []cluster.Request {
	t.Helper()
	last := "last-" + rand.String(10)
	if _, err := c.Client().CoreV1().ConfigMaps("default").Get(t.Context(), last, metav1.GetOptions{}); err == nil {
		t.Fatal("a ConfigMap that nobody made is there")
	}
	cluster.Eventually(t, "the last request in the audit log", func() error {
		if !slices.ContainsFunc(requestsOf(t, c, "admin"), func(r cluster.Request) bool { return r.ObjectRef.Name == last }) {
			return errors.New("it is not there")
		}
		return nil
	})
	requests := requestsOf(t, c, "")
	slices.SortStableFunc(requests, func(a, b cluster.Request) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	return requests
}

func requestsOf(t *testing.T, c *cluster.Cluster, user string) []cluster.Request {
	t.Helper()
	requests, err := c.Requests(user)
	if err != nil {
		t.Fatal(err)
	}
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
func writesOf[T any](t *testing.T, requests []cluster.Request, resource string) []write[T] {
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
