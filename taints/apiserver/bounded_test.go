package apiserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
)

// readers are all the ways in which a client reads from the API server, but for
// watches.
func readers(client *Client) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"get a Node": func(ctx context.Context) error { _, err := client.GetNode(ctx, "a"); return err },
		"list Nodes": func(ctx context.Context) error {
			return client.Each(ctx, func(*taints.Node) error { return nil })
		},
		"list pods":      func(ctx context.Context) error { _, err := client.AgentPods(ctx, "n", "a=b"); return err },
		"list slices":    func(ctx context.Context) error { _, err := client.ListSlices(ctx, "n", "s"); return err },
		"get a slice":    func(ctx context.Context) error { _, err := client.GetSlice(ctx, "n", "s"); return err },
		"get a Lease":    func(ctx context.Context) error { _, err := client.LeaseRenewed(ctx, "b"); return err },
		"get a slot":     func(ctx context.Context) error { _, err := client.Slots("n").get(ctx, "s"); return err },
		"get a policy":   func(ctx context.Context) error { _, _, err := client.KeepPolicy(ctx, true); return err },
		"write an Event": func(ctx context.Context) error { return client.Announce(ctx, &taints.Node{}, "r", "m") },
	}
}

// packed is an object with an annotation of so many bytes, as few on the wire.
func packed(t *testing.T, size int64) []byte {
	t.Helper()
	var wire bytes.Buffer
	zip := gzip.NewWriter(&wire)
	_, err := io.Copy(zip, io.MultiReader(
		strings.NewReader(`{"metadata":{"annotations":{"a":"`), io.LimitReader(endless('a'), size),
		strings.NewReader(`"}},"status":"Failure","kind":"Status","apiVersion":"v1","code":500}`)))
	if err := errors.Join(err, zip.Close()); err != nil {
		t.Fatal(err)
	}
	return wire.Bytes()
}

type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

// allocated is how many bytes doing something takes, given back or not.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// No answer of the API server is read beyond its bound, whatever asked for it: an
// agent may take 64 MiB.
func TestAnswersHaveABound(t *testing.T) {
	wire := packed(t, 64<<20)
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(status)
			w.Write(wire) //nolint:errcheck // it hangs up
		}))
		defer server.Close()
		client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, "a")
		if err != nil {
			t.Fatal(err)
		}
		for name, read := range readers(client) {
			var err error
			mostTaken := uint64(32 << 20)
			if name == "list Nodes" || name == "list pods" { // read by people, and again in smaller pages
				mostTaken = 256 << 20
			}
			taken := allocated(func() { err = read(t.Context()) })
			if taken > mostTaken {
				t.Errorf("status %d: to %s takes %d MiB for an answer of 64 MiB", status, name, taken>>20)
			}
			switch {
			case err == nil:
				t.Errorf("status %d: to %s is no error", status, name)
			case status == http.StatusOK && !errors.Is(err, ErrTooLarge):
				t.Errorf("to %s: %.300v", name, err)
			case status != http.StatusOK && apierrors.ReasonForError(err) == "":
				t.Errorf("to %s: the status code is lost: %.300v", name, err)
			}
			if len(err.Error()) > maxError+1<<10 {
				t.Errorf("status %d: to %s: an error of %d KiB", status, name, len(err.Error())>>10)
			}
			if IsUnanswered(err) {
				t.Errorf("status %d: to %s counts as not answered", status, name)
			}
		}
	}
}

// A page of Nodes that is too large is asked for again in smaller ones, and no Node
// is told twice.
func TestLargePagesAreDivided(t *testing.T) {
	t.Parallel()
	const node = `{"metadata":{"name":"NAME","annotations":{"a":"VALUE"}}}`
	var limits []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limits = append(limits, r.URL.Query().Get("limit"))
		items, more := []string{}, ""
		if r.URL.Query().Get("continue") == "" {
			items, more = append(items, strings.NewReplacer("NAME", "small", "VALUE", "").Replace(node)), "1"
		}
		if limit := r.URL.Query().Get("limit"); r.URL.Query().Get("continue") != "" {
			fill := 10 << 20
			if limit == "7" {
				fill = 1 << 20
			}
			items = append(items, strings.NewReplacer("NAME", "large", "VALUE", strings.Repeat("a", fill)).Replace(node))
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"`+more+`"},"items":[`+strings.Join(items, ",")+`]}`) //nolint:errcheck // the client sees it
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, "")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	err = client.Each(t.Context(), func(n *taints.Node) error { told = append(told, n.Name); return nil })
	if err != nil || strings.Join(told, " ") != "small large" {
		t.Errorf("told %v, error %.300v", told, err)
	}
	if got := strings.Join(limits, " "); got != "500 500 62 7" {
		t.Errorf("limits asked for: %s", got)
	}
}
