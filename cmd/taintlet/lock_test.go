package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/serve"
)

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	listener, err := serve.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it is only asked for its address
	return listener.Addr().String()
}

func nameOf(t *testing.T, node string, cluster *rest.Config) string {
	t.Helper()
	name, err := lockName(node, cluster)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// The second agent of a Node waits, says so, and runs when the first has ended.
func TestSecondAgentWaits(t *testing.T) {
	name := nameOf(t, t.Name(), &rest.Config{})
	o := &options{listen: free(t)}
	first, err := o.lock(t.Context(), name, slog.Default())
	if first == nil {
		t.Fatal(err)
	}
	log, logged := io.Pipe()
	got := make(chan net.Listener)
	go func() {
		lock, err := o.lock(t.Context(), name, slog.New(slog.NewTextHandler(logged, nil)))
		if err != nil {
			t.Error(err)
		}
		got <- lock
	}()
	line := make([]byte, 1000)
	n, _ := log.Read(line)
	if text := string(line[:n]); !strings.Contains(text, otherRuns) {
		t.Errorf("the log says: %s", text)
	}
	go io.Copy(io.Discard, log) //nolint:errcheck // until the test ends
	for path, want := range map[string]struct {
		code int
		text string
	}{"/healthz": {200, "ok"}, "/readyz": {503, "not ready: " + otherRuns}} {
		code, text := ask(t, "http://"+o.listen+path)
		for text == "" || strings.Contains(text, "does not run yet") { // the port opens after the log
			code, text = ask(t, "http://"+o.listen+path)
		}
		if code != want.code || text != want.text {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	select {
	case <-got:
		t.Fatal("both have the lock")
	default:
	}
	first.Close() //nolint:errcheck // it has ended
	second := <-got
	defer second.Close() //nolint:errcheck // as above
	if listener, err := serve.Listen(t.Context(), o.listen); err != nil {
		t.Errorf("the port is not free for the agent: %v", err)
	} else {
		listener.Close() //nolint:errcheck // it was free
	}
}

func ask(t *testing.T, url string) (code int, text string) {
	t.Helper()
	answer, err := http.Get(url) //nolint:gosec // of this test
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, strings.TrimSpace(string(body))
}

// Any process that has the socket is waited for, and the end of the agent ends that.
func TestWaitsForAnyOwnerOfTheLock(t *testing.T) {
	name := nameOf(t, t.Name(), &rest.Config{})
	squatter, err := new(net.ListenConfig).Listen(t.Context(), "unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close() //nolint:errcheck // as above
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, logged := io.Pipe()
	go func() {
		line := make([]byte, 1000)
		n, _ := log.Read(line)
		if text := string(line[:n]); !strings.Contains(text, otherRuns) {
			t.Errorf("the log says: %s", text)
		}
		cancel()
	}()
	if lock, err := (&options{}).lock(ctx, name, slog.New(slog.NewTextHandler(logged, nil))); lock != nil || err != nil {
		t.Errorf("%v, %v", lock, err)
	}
}

// One Node of one cluster has one lock, however its certificate authority is given.
func TestLockNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("authority\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inCluster := &rest.Config{Host: "https://10.96.0.1:443", TLSClientConfig: rest.TLSClientConfig{CAFile: file}}
	byHand := &rest.Config{Host: "https://192.0.2.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority")}}
	other := &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("another")}}
	same, want := nameOf(t, "a", byHand), nameOf(t, "a", inCluster)
	if same != want {
		t.Error("two names for one Node")
	}
	if nameOf(t, "b", inCluster) == want || nameOf(t, "a", other) == want {
		t.Error("one name for two Nodes")
	}
}
