package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// proxy stands between the agent of a Node and the API server. It numbers the agent's
// requests and asks its rule what becomes of each.
type proxy struct {
	front       *httptest.Server
	wire        *wire
	certificate atomic.Pointer[tls.Certificate]
	onward      *httputil.ReverseProxy

	mu       sync.Mutex
	count    int
	rule     rule
	requests []string               // that a fault befell, for whoever reads of a failure
	reached  map[string]int         // faults by name and kind of request
	seen     func(c call, b string) // every request, with its body
}

// call is one request of an agent.
type call struct {
	number   int
	kind     string // such as "patch nodes"
	protocol string // such as "HTTP/1.1"
}

// rule says what becomes of a request; nil: the API server answers it.
type rule func(c call) *fault

// fault is what becomes of one request.
type fault struct {
	name string
	// instead answers in the place of the API server; nil: the API server does.
	instead http.HandlerFunc
	// landed sees the API server's answer before the agent does. With an error the agent
	// gets no answer.
	landed func(*http.Response) error
}

// errNoAnswer: the agent is to get no answer.
var errNoAnswer = errors.New("the agent gets no answer")

type landedKey struct{}

// newProxy returns a proxy without a rule. seen is told each request from the start: an agent whose
// proxy had the port before may call at once.
func newProxy(t testing.TB, as *rest.Config, seen func(c call, body string)) *proxy {
	t.Helper()
	target, err := url.Parse(as.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TLSConfigFor(rest.AnonymousClientConfig(as))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{reached: map[string]int{}, seen: seen}
	onward := &http.Transport{TLSClientConfig: transport, ForceAttemptHTTP2: true}
	p.onward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     onward,
		FlushInterval: -1,
		ErrorLog:      silent(),
		ModifyResponse: func(answer *http.Response) error {
			if landed, ok := answer.Request.Context().Value(landedKey{}).(func(*http.Response) error); ok {
				return landed(answer)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.front = httptest.NewUnstartedServer(p)
	p.wire = newWire(p.front.Listener)
	p.front.Listener = p.wire
	p.front.EnableHTTP2 = true
	p.front.Config.ErrorLog = silent()
	certificate, err := authorities().ca.issue(inLongTime())
	if err != nil {
		t.Fatal(err)
	}
	p.certificate.Store(certificate)
	p.front.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{*p.certificate.Load()}}, nil
	}}
	p.front.StartTLS()
	t.Cleanup(func() {
		p.front.CloseClientConnections()
		p.front.Close()
		onward.CloseIdleConnections()
	})
	return p
}

// configFor is the client's configuration with the proxy as its API server.
func (p *proxy) configFor(as *rest.Config) *rest.Config {
	through := rest.CopyConfig(as)
	through.Host = p.front.URL
	through.CAData = authorities().ca.pem()
	return through
}

// begin asks the rule from now on; nil: no request is disturbed any more.
func (p *proxy) begin(r rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = r
}

// cut closes all connections, and with them the agent's watch.
func (p *proxy) cut() { p.front.CloseClientConnections() }

// numbered returns how many requests there were.
func (p *proxy) numbered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// ServeHTTP answers a request as the rule says.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f := p.judgeCall(r, string(body))
	if isNodeRead(r) { // so that a fault can answer in the API server's place
		r.Header.Set("Accept", "application/json")
	}
	switch {
	case f == nil:
	case f.instead != nil:
		f.instead(w, r)
		return
	case f.landed != nil:
		r = r.WithContext(context.WithValue(r.Context(), landedKey{}, f.landed))
	}
	p.onward.ServeHTTP(w, r)
}

func (p *proxy) judgeCall(r *http.Request, body string) *fault {
	p.mu.Lock()
	p.count++
	c := call{p.count, kindOf(r), r.Proto}
	rule := p.rule
	p.mu.Unlock()
	p.seen(c, body)
	if rule == nil {
		return nil
	}
	f := rule(c)
	if f != nil {
		p.mu.Lock()
		p.reached[f.name+" | "+c.kind]++
		p.requests = append(p.requests, fmt.Sprintf("request %d, %s: %s", c.number, c.kind, f.name))
		p.mu.Unlock()
	}
	return f
}

// kindOf names a request by verb and resource, without names.
func kindOf(r *http.Request) string {
	resource := "other"
	for _, known := range []string{"nodes", "leases", "events", "endpointslices", "mutatingadmissionpolicybindings"} {
		if strings.Contains(r.URL.Path, "/"+known) {
			resource = known
		}
	}
	if strings.Contains(r.URL.Path, "/mutatingadmissionpolicies/") { // the same lookup
		resource = "mutatingadmissionpolicybindings"
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodGet: "get", http.MethodDelete: "delete"}[r.Method]
	switch {
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+resource):
		verb = "list"
	}
	if strings.HasSuffix(r.URL.Path, "/status") {
		resource += "/status"
	}
	return verb + " " + resource
}

func isNodeRead(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/nodes")
}
