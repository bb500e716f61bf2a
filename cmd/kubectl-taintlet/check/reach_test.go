package check

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
)

// checked runs the checks of an installation against a server.
func checked(ctx context.Context, t *testing.T, o Options) (out string, isWell bool, err error) {
	t.Helper()
	var text strings.Builder
	o.Out, o.Namespace = &text, "taintlet-system"
	isWell, err = Run(ctx, o)
	return text.String(), isWell, err
}

// refusing answers each request but those for the version with a status of Kubernetes.
func refusing(version string, code int, reason string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" && version != "" {
			_, _ = w.Write([]byte(version))
			return
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "` + reason + `", "message": "no"}`))
	})
}

// Of a server that does not answer, or that does not know who asks, nothing is asked or
// advised but that.
func TestNothingIsAskedOfAServerThatDoesNotAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"nobody is there":        {nil, "does not answer: "},
		"nobody knows who asks":  {refusing("", http.StatusUnauthorized, "Unauthorized"), "does not accept your credentials: "},
		"another kind of server": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }), "does not answer: "},
	} {
		server := httptest.NewServer(test.handler)
		if test.handler == nil {
			server.Close()
		}
		out, isWell, err := checked(t.Context(), t, Options{Config: &rest.Config{Host: server.URL}})
		server.Close()
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || isWell || out != "" {
			t.Errorf("%s: %v, %t, and printed\n%s", name, err, isWell, out)
		}
	}
}

// Who may not list Nodes is told so, and of nothing else that it were broken.
func TestWithoutRightsItStops(t *testing.T) {
	server := httptest.NewServer(refusing(`{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}`, http.StatusForbidden, "Forbidden"))
	defer server.Close()
	out, isWell, err := checked(t.Context(), t, Options{Config: &rest.Config{Host: server.URL}})
	want := `cluster
-------
√ Kubernetes is v1.37.2, 1.30 or later
× the Nodes cannot be listed: list nodes: no
    use an account that may list nodes
    https://github.com/taintlet/taintlet/blob/main/deploy/README.md#permissions

1 passed, 1 failed; nothing else can be checked without it
`
	if err != nil || isWell || out != want {
		t.Errorf("%v, %t:\n%s\nwant\n%s", err, isWell, out, want)
	}
}

// Who waits is told once what for, and gets the last result when the time is over.
func TestWaitEndsInTime(t *testing.T) {
	server := httptest.NewServer(refusing(`{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}`, http.StatusForbidden, "Forbidden"))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), retryAfter+retryAfter/2)
	defer cancel()
	var told strings.Builder
	begin := time.Now()
	out, isWell, err := checked(ctx, t, Options{Config: &rest.Config{Host: server.URL}, Wait: true, Err: &told})
	if took := time.Since(begin); err != nil || isWell || took < retryAfter || !strings.Contains(out, "1 failed") || strings.Count(told.String(), "waiting: the Nodes cannot be listed") != 1 {
		t.Errorf("after %s: %v, %t, told %q:\n%s", took, err, isWell, told.String(), out)
	}
}

// A roll-out is not over while its checks warn. Other warnings are not waited for.
func TestSettled(t *testing.T) {
	for name, test := range map[string]struct {
		line Line
		want bool
	}{
		"all is well":          {Line{Name: "signs", Finding: status.Finding{Severity: OK}}, true},
		"something failed":     {Line{Name: "signs", Finding: status.Finding{Severity: Failed}}, false},
		"pods of two versions": {Line{Name: "images", Finding: status.Finding{Severity: Warning}}, false},
		"an old configuration": {Line{Name: "in-force", Finding: status.Finding{Severity: Warning}}, false},
		"a warning":            {Line{Name: "kernel", Finding: status.Finding{Severity: Warning}}, true},
	} {
		r := Report{Lines: []Line{{Name: "version", Finding: status.Finding{Severity: OK}}, test.line}}
		if (len(r.unsettled(true)) == 0) != test.want {
			t.Errorf("%s: settled is %t", name, !test.want)
		}
	}
}
