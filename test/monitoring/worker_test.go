package monitoring

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

// worker is a Node with an agent of its own, in a bubble of synthetic time. The agent
// is the real one, with the default configuration: it reads files, decides, writes a Node
// in memory and serves /metrics.
type worker struct {
	host    *fixtures.Host
	node    *sharedNode
	network *scriptedNetwork
	http    *http.Client
	stop    context.CancelFunc
	done    chan error
	stalled time.Duration

	mu      sync.Mutex
	refused error // what reading the configuration again returns; isNew: it has not yet
	isNew   bool
}

// newWorker returns a worker whose agent does not run yet.
func newWorker(t *testing.T, name string) *worker {
	w := &worker{host: fixtures.NewHost(t), network: &scriptedNetwork{failing: map[verdict.Class]bool{}}}
	w.node = &sharedNode{Memory: node.NewMemory(name, slog.New(slog.DiscardHandler))}
	w.host.Write("proc/pressure/memory", pressure(0, 0))
	return w
}

// start starts the agent, in the bubble of the caller.
func (w *worker) start(ctx context.Context, name string) {
	cfg, log := config.Default(), slog.New(slog.DiscardHandler)
	ctx, w.stop = context.WithCancel(ctx)
	w.done, w.node.versions = make(chan error, 1), make(chan *taints.Node, 1) // of this bubble
	w.network.reset()
	host := probes.Host{Root: w.host.Root, Proc: filepath.Join(w.host.Dir, "proc"), Sys: filepath.Join(w.host.Dir, "sys")}
	a := &agent.Agent{
		Config: cfg, Client: w.node, Slots: slots.Rehearsed{Log: log}, Recorder: noEvents{}, Log: log,
		Fleet: fleet.New(fleet.Options{
			Node: name, Listen: netip.MustParseAddrPort("[::]:4808"), Namespace: "taintlet-system", Service: "taintlet", Source: endpoints{}, Log: log,
		}),
		NewProbe: func(c config.Condition) probes.Probe {
			if c.Name == probes.NetworkUnavailable {
				return w.network
			}
			return hostprobes.NewProbe(host)(c)
		},
		Reload:   func() (*config.Config, error) { return w.reload(cfg) },
		Instance: "agent-of-" + name, Boot: decide.Boot{ID: "boot", At: time.Now()}, Now: time.Now,
		Version: "recorded",
	}
	pipes := newPipes()
	w.http = &http.Client{Transport: &http.Transport{DialContext: pipes.dial, DisableKeepAlives: true}}
	go func() { w.done <- a.Run(ctx, pipes) }()
}

// end ends the agent and waits for it. Taints stay.
func (w *worker) end() error {
	if w.stop == nil {
		return nil
	}
	w.stop()
	w.stop = nil
	return <-w.done
}

// metrics returns what the agent serves; an error when it does not run.
func (w *worker) metrics(ctx context.Context) (string, error) {
	if w.stop == nil {
		return "", errors.New("the agent does not run")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := w.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	page, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(page), err
}

// refuse makes the configuration invalid; nil: valid again.
func (w *worker) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused, w.isNew = err, true
}

// reload returns what is new of the configuration.
func (w *worker) reload(valid *config.Config) (*config.Config, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isNew {
		return nil, nil //nolint:nilnil // nothing is
	}
	w.isNew = false
	if w.refused != nil {
		return nil, w.refused
	}
	return valid, nil
}

// memory makes that percentage available. With little of it, tasks wait for it in a
// third of each second.
func (w *worker) memory(percent float64) {
	const total = 16 << 20 // KiB
	w.host.Write("proc/meminfo", fixtures.Meminfo(total, int(total*percent/100)))
	if percent < 12 {
		w.stalled += time.Second / 3
		w.host.Write("proc/pressure/memory", pressure(w.stalled, w.stalled/4))
	}
}

// sharedNode is a Node in memory that others write too.
type sharedNode struct {
	*node.Memory
	versions chan *taints.Node

	mu   sync.Mutex
	node *taints.Node
}

// Watch sends the Node, and each version that others make of it.
func (s *sharedNode) Watch(ctx context.Context, nodes chan<- *taints.Node) error {
	watching := make(chan error, 1)
	go func() { watching <- s.Memory.Watch(ctx, nodes) }()
	for {
		select {
		case version := <-s.versions:
			select {
			case nodes <- version:
			case <-ctx.Done():
			}
		case err := <-watching:
			return err
		}
	}
}

// Apply writes the Node as it is now.
func (s *sharedNode) Apply(ctx context.Context, base *taints.Node, change taints.Desired) (*taints.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node != nil {
		base = s.node
	}
	after, err := s.Memory.Apply(ctx, base, change)
	if err == nil {
		after.LastWriter = ""
		s.node = after
	}
	return after, err
}

// edit lets somebody else write the Node, under the name of a field manager.
func (s *sharedNode) edit(ctx context.Context, manager string, change func(*taints.Node)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node == nil {
		return errors.New("the agent has not written its Node yet")
	}
	before := s.node.Clone()
	change(before)
	after, err := s.Memory.Apply(ctx, before, taints.Desired{}) // a new version
	if err != nil {
		return err
	}
	after.LastWriter = manager
	s.node = after
	s.versions <- after
	return nil
}

type noEvents struct{}

func (noEvents) Event(*taints.Node, string, string, string) {}

// pipes is a listener in memory, of which synthetic time can say when all wait.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    func()
}

func newPipes() *pipes {
	p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- local{server}:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *pipes) Close() error {
	p.close()
	return nil
}

// Addr is that of the host itself.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4808} }

// local is a connection of the host to itself, whose scrapes have no bound.
type local struct{ net.Conn }

func (local) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4808} }
func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 50000} }
