package cluster

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestRequestsAreReadFromAllFilesAndByWholeLines(t *testing.T) {
	c := &Cluster{dir: t.TempDir()}
	for name, text := range map[string]string{
		// The API server has moved this one out of the way.
		"audit-2026-01-01T00-00-00.000.log": `{"auditID":"1","verb":"get","user":{"username":"system:a"},"objectRef":{"resource":"nodes","subresource":"status"}}
`,
		"audit.log": `{"auditID":"2","verb":"patch","user":{"username":"system:a"},"requestObject":{"spec":{}},"responseStatus":{"code":200}}
{"auditID":"3","verb":"get","user":{"username":"system:b"},"requestURI":"/of/system:a","impersonatedUser":{"username":"system:a"}}
{"auditID":"4","verb":"get","user":{"username":"system:a"`,
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string]map[string]string{
		":a": {"1": "get nodes/status", "2": "patch "},
		"":   {"1": "get nodes/status", "2": "patch ", "3": "get "},
		"c":  {},
	} {
		requests, err := c.Requests(user)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, r := range requests {
			got[r.AuditID] = r.Verb + " " + r.Resource()
			if r.AuditID == "2" && (string(r.RequestObject) != `{"spec":{}}` || r.ResponseStatus.Code != 200) {
				t.Errorf("request %+v", r)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("of %q: %v, want %v", user, got, want)
		}
	}
}
