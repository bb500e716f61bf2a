package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	// dialTimeout is how long a connection may take. The kernel asks a second time
	// after 1 s and a third time after 3 s (tcp_syn_retries in tcp(7)).
	dialTimeout = 3 * time.Second
	// distrust is how long the kept connection is not used after a request on it
	// got no answer. client-go notices a dead one after 45 s
	// (ReadIdleTimeout and PingTimeout in k8s.io/apimachinery/pkg/util/net).
	distrust = time.Minute
	// spareIdle is how long a spare connection stays open unused. A connection that died while it
	// was unused makes the next request wait in vain.
	spareIdle = 10 * time.Second
)

// connections are the ways to the API server: one connection for the watch and for most
// requests, and others for a while after a request got no answer. The first one may be dead
// then, and a request on it would wait in vain.
type connections struct {
	// kept is HTTP/2: a request without an answer leaves the connection open.
	kept rest.Interface
	// spare is HTTP/1.1: a request without an answer closes its connection (net/http), so
	// that the next one never waits on the same. Whatever is answered keeps it open: in an
	// overload of the API server each handshake would add to the load.
	spare rest.Interface
	// failedAt is when a request last got no answer; nil: none has. It keeps its
	// monotonic reading, so that no step of the wall clock matters.
	failedAt atomic.Pointer[time.Time]
	patches  lateness
	detour   *detour
}

// newConnections connects by a configuration that has all but the transport. It may have
// its own dialer.
func newConnections(config *rest.Config) (*connections, error) {
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	way := &detour{dial: config.Dial, configured: hostAndPort(config), open: map[*detoured]bool{}}
	config.Dial = way.DialContext
	Bound(config, maxObject)
	client, err := rest.HTTPClientFor(config) // a new one, because it has a dialer
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	client.CheckRedirect = stay
	kept, err := rest.RESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	transport := &http.Transport{
		TLSClientConfig: tlsConfig, DialContext: config.Dial, Proxy: http.ProxyFromEnvironment,
		TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: 1, IdleConnTimeout: spareIdle,
	}
	if config.Proxy != nil {
		transport.Proxy = config.Proxy
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	spare, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: wrapped, CheckRedirect: stay})
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	return &connections{kept: kept, spare: spare, detour: way}, nil
}

// stay follows no redirect. An API server sends none, the token would be sent to any host, and after
// a 302 net/http reads instead of writing, so that nothing is stored and no error returned.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// hostAndPort is the address that is dialed for a configuration; empty: it is not valid.
func hostAndPort(config *rest.Config) string {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil || server.Host == "" {
		return ""
	}
	port := map[string]string{"http": "80"}[server.Scheme]
	address := net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), port, "443"))
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "" // such as that of the URL "a://]"
	}
	return address
}

// request calls do with the way to be used now, and learns from its error.
func (c *connections) request(do func(rest.Interface) error) error {
	way := c.kept
	if failedAt := c.failedAt.Load(); failedAt != nil && time.Since(*failedAt) < distrust {
		way = c.spare
	}
	err := do(way)
	if IsUnanswered(err) {
		c.failedAt.Store(new(time.Now()))
	}
	return err
}

// IsUnanswered reports whether err means that no answer came. A request that its caller cancelled
// does not count, nor one whose answer is too large or shows a changed Node.
func IsUnanswered(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !errors.As(err, &status) && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrOvertaken)
}

// Slow is the least time that a patch of the Node takes while many agents write theirs. Otherwise
// it takes milliseconds.
const Slow = time.Second

// lateFor is how long a slow patch is remembered.
const lateFor = time.Minute

// lateness is whether the patches of the Node take long at present.
type lateness struct {
	mu           sync.Mutex
	begun, ended time.Time // of the patch that nobody has answered yet, and of the newest slow one; zero: none
}

// begin notes that a patch begins, and returns what notes that it is over.
func (l *lateness) begin() (end func()) {
	begun := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = begun
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.begun = time.Time{}
		if time.Since(begun) >= Slow {
			l.ended = time.Now()
		}
	}
}

func (l *lateness) isLate() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isWaiting := !l.begun.IsZero() && time.Since(l.begun) >= Slow
	return isWaiting || !l.ended.IsZero() && time.Since(l.ended) < lateFor
}
