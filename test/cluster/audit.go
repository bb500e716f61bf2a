package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Request is what tests read of an audit.k8s.io/v1 Event. What asks for no
// object has an empty ObjectRef.
type Request struct {
	AuditID, Verb, RequestURI string
	User                      struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct {
		Code    int
		Message string
	}
	// RequestObject and ResponseObject are the bodies, as far as the audit policy
	// keeps them.
	RequestObject, ResponseObject json.RawMessage

	RequestReceivedTimestamp time.Time
}

// Resource is the resource with its subresource, such as nodes/status.
func (r Request) Resource() string {
	return strings.TrimSuffix(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// Requests returns the requests of users whose names end so, all if user is empty,
// by the API server's audit log (Options.AuditLog). The log has an entry for the
// start of a watch and one for its end. A line that is not yet written to its end
// is left out.
func (c *Cluster) Requests(user string) ([]Request, error) {
	// The API server begins a new file after 100 MB and renames the old one.
	files, err := filepath.Glob(strings.TrimSuffix(c.AuditLogPath(), ".log") + "*.log")
	if err != nil {
		return nil, err
	}
	var requests []Request
	for _, file := range files {
		log, err := os.ReadFile(file) //nolint:gosec // our own file
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(log) {
			if !bytes.Contains(line, []byte(user+`"`)) || !bytes.HasSuffix(line, []byte("\n")) {
				continue
			}
			var r Request
			if err := json.Unmarshal(line, &r); err != nil {
				return nil, fmt.Errorf("audit log: %w: %s", err, line)
			}
			if strings.HasSuffix(r.User.Username, user) {
				requests = append(requests, r)
			}
		}
	}
	return requests, nil
}

// Once returns each request once: a watch has an entry for its start and one for its end.
func Once(requests []Request) (once []Request) {
	seen := map[string]bool{}
	for _, r := range requests {
		if !seen[r.AuditID] {
			seen[r.AuditID] = true
			once = append(once, r)
		}
	}
	return once
}
