package security

import (
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/cluster"
)

// api stands in front of the API server and can answer in its place.
type api struct {
	gate  *cluster.Gate
	front *httptest.Server
	fault atomic.Pointer[fault]
}

// fault answers in place of the API server; false: it did not.
type fault func(w http.ResponseWriter, r *http.Request) bool

// newAPI returns an API server that works, for a client who is known to it.
func newAPI(t *testing.T, as *rest.Config) *api {
	t.Helper()
	target, err := url.Parse(as.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TLSConfigFor(rest.AnonymousClientConfig(as))
	if err != nil {
		t.Fatal(err)
	}
	a := &api{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{TLSClientConfig: transport, ForceAttemptHTTP2: true},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	a.front = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := a.fault.Load(); f == nil || !(*f)(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	a.front.EnableHTTP2 = true
	a.front.Config.ErrorLog = nil
	a.front.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	a.front.StartTLS()
	t.Cleanup(func() {
		a.front.CloseClientConnections()
		a.front.Close()
	})
	a.gate = cluster.NewGate(t, strings.TrimPrefix(a.front.URL, "https://"))
	a.gate.Open()
	return a
}

// configFor is the client's configuration with this API server.
func (a *api) configFor(as *rest.Config) *rest.Config {
	through := rest.CopyConfig(as)
	through.Host = "https://" + a.gate.Address
	through.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.front.Certificate().Raw})
	return through
}

// begin has the fault answer from now on, also on watches that run: they are cut.
func (a *api) begin(f fault) {
	a.fault.Store(&f)
	a.front.CloseClientConnections()
}

func (a *api) end() { a.fault.Store(nil) }

// apiFault is a fault of an API server: what begins it, and what ends it.
type apiFault struct {
	begin, end func(*api)
	// within is how long after its end a taint may come; 0: maxDelayAfterOutage.
	within time.Duration
}

// afterAnswers is the longest pause of a writer that got answers for some time: the
// server has trouble enough (taints/pace/pace.go).
const afterAnswers = 13 * time.Second

// afterSilence is how long a request waits on a connection that says nothing, and
// some time to try again.
const afterSilence = 15 * time.Second

func answering(f fault) apiFault {
	one := apiFault{begin: func(a *api) { a.begin(f) }, end: (*api).end}
	if isLong() {
		one.within = afterAnswers
	}
	return one
}

func apiStatus(code int, retryAfter string) apiFault {
	return answering(func(w http.ResponseWriter, _ *http.Request) bool {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(code)
		return true
	})
}

// answer is an answer with this text, whatever was asked.
func answer(contentType string, text string) apiFault {
	return answering(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, text) //nolint:errcheck // the agent may hang up
		return true
	})
}

func apiFaults() map[string]apiFault {
	isWatch := func(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }
	return map[string]apiFault{
		"connections refused":    {begin: func(a *api) { a.gate.Refuse() }, end: func(a *api) { a.gate.Open() }},
		"silence":                {begin: func(a *api) { a.gate.Hush() }, end: func(a *api) { a.gate.Open() }, within: afterSilence},
		"500":                    apiStatus(500, ""),
		"503":                    apiStatus(503, ""),
		"500, again in an hour":  apiStatus(500, "3600"),
		"429":                    apiStatus(429, ""),
		"429, again in a second": apiStatus(429, "1"),
		"429, again in an hour":  apiStatus(429, "3600"),
		"429, again in 1e9 s":    apiStatus(429, "1000000000"),
		"a redirect to itself": answering(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
			return true
		}),
		"a Node of nothing": answer("application/json", "{}"),
		"half of an answer": answer("application/json", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"atta`),
		"garbage":           answer("application/vnd.kubernetes.protobuf", strings.Repeat("\x00\xff", 5000)),
		"HTML":              answer("text/html", "<html>"+strings.Repeat("<p>", 1000)),
		"slow answers": answering(func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
			return false
		}),
		"watches that end at once": answering(func(_ http.ResponseWriter, r *http.Request) bool {
			if isWatch(r) {
				panic(http.ErrAbortHandler)
			}
			return false
		}),
		"garbage from the watch": answering(func(w http.ResponseWriter, r *http.Request) bool {
			if isWatch(r) {
				w.Header().Set("Content-Type", "application/json;stream=watch")
				io.WriteString(w, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1"}}`+"\n"+strings.Repeat("x", 1000)) //nolint:errcheck // the agent may hang up
			}
			return isWatch(r)
		}),
	}
}

func faultAttacks() []attack {
	var all []attack
	faults := apiFaults()
	for _, name := range []string{
		"connections refused", "silence", "500", "503", "500, again in an hour", "429", "429, again in a second", "429, again in an hour", "429, again in 1e9 s",
		"a redirect to itself", "a Node of nothing", "half of an answer", "garbage", "HTML", "slow answers", "watches that end at once", "garbage from the watch",
	} {
		one := faults[name]
		all = append(all, attack{
			name: "API server: " + name, guarded: true, quiet: true,
			longOnly: !slices.Contains([]string{"connections refused", "429, again in an hour", "garbage from the watch"}, name),
			run:      func(t *testing.T, c *scene) (int, int) { return playFault(t, c, one) },
		})
	}
	return all
}

const longFault = 5 * time.Second

// playFault makes the host sick while the API server is at fault. The delay counts
// from its end, unless the taint came in spite of it.
func playFault(t *testing.T, c *scene, one apiFault) (attempts, denied int) {
	one.begin(c.api)
	sick := time.Now()
	c.host.Memory(2)
	c.attacked.WaitMetric(`taintlet_condition_level{condition="MemoryPressure",level="Degraded"} 1`)
	length := time.Second
	if isLong() {
		length = longFault
	}
	select {
	case <-time.After(length - time.Since(sick)):
	case <-t.Context().Done():
	}
	back := time.Now()
	one.end(c.api)
	if _, ok := c.nodes.until(0, isTainted); !ok {
		c.taintComes(back, cmp.Or(one.within, maxDelayAfterOutage))
	}
	c.recover()
	if isLong() {
		c.hearsOfItsNode(t)
	}
	return 1, 1
}

// latestWatch is when the watch is back: client-go notices a dead connection after
// 45 s, and doubles its pauses from 0.8 s to 30 s.
const latestWatch = 100 * time.Second

// hearsOfItsNode checks that the agent's watch is back.
func (s *scene) hearsOfItsNode(t *testing.T) {
	t.Helper()
	begin := time.Now()
	s.leaveToNewerRelease(t)
	if took := time.Since(begin); took > latestWatch {
		t.Errorf("the agent's watch was back after %s", took)
	}
	s.annotate(t, map[string]string{taints.RecordAnnotation: ""})
	s.waitReady(t, "removed", true)
}
