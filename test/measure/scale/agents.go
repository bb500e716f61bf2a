package scale

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/probes"
)

// agentsGC is by how much the heap of all agents together grows between two collections,
// in percent. An agent on a host of its own hardly collects. Here its collections would
// take the processors from the API server, and there is memory enough, up to agentsMemory bytes.
const (
	agentsGC     = 400
	agentsMemory = 8 << 30
)

// agentsProcess is the child process in which all agents run.
type agentsProcess struct {
	setup     *setup
	directory *directory
	traffic   traffic
	told      *counted
	log       *slog.Logger
	hollows   []*hollow
}

func newAgentsProcess(s *setup) *agentsProcess {
	debug.SetGCPercent(agentsGC)
	debug.SetMemoryLimit(agentsMemory)
	p := &agentsProcess{setup: s, directory: newDirectory(), told: &counted{
		Handler: slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}), counts: map[string]int{},
	}}
	p.log = slog.New(p.told)
	klog.SetSlogLogger(p.log)
	for i, node := range s.Nodes {
		p.hollows = append(p.hollows, newHollow(node, i+1))
	}
	return p
}

// do does one command.
func (p *agentsProcess) do(c command) (any, error) {
	var chosen []*hollow
	for i := c.First; i < c.First+c.Count; i += max(1, c.Step) {
		chosen = append(chosen, p.hollows[i])
	}
	switch c.Op {
	case "start":
		return nil, p.startAll(chosen, c.Over)
	case "level":
		var level probes.Level
		if err := level.UnmarshalText([]byte(c.Level)); err != nil {
			return nil, err
		}
		for _, h := range chosen {
			h.scripts[probes.MemoryPressure].says(level)
		}
		return nil, nil
	case "restart":
		return p.restart(chosen)
	case "report":
		return p.report(), nil
	}
	return nil, fmt.Errorf("unknown command %q", c.Op)
}

func (p *agentsProcess) start(h *hollow) error {
	restConfig := p.setup.as(p.setup.Tokens[h.node])
	restConfig.Dial = h.dialer.DialContext
	restConfig.Wrap(func(next http.RoundTripper) http.RoundTripper { return &countingTransport{next, &p.traffic} })
	return h.start(p, restConfig)
}

// startAll starts the agents one after another, evenly spread over a time.
func (p *agentsProcess) startAll(all []*hollow, over time.Duration) error {
	begin := time.Now()
	for i, h := range all {
		time.Sleep(time.Until(begin.Add(over * time.Duration(i) / time.Duration(len(all)))))
		if err := p.start(h); err != nil {
			return err
		}
	}
	return nil
}

// restart ends these agents and starts them, and returns when each was started.
func (p *agentsProcess) restart(all []*hollow) (map[string]time.Time, error) {
	var ends sync.WaitGroup
	for _, h := range all {
		ends.Go(func() { h.stop() })
	}
	ends.Wait()
	started := map[string]time.Time{}
	for _, h := range all {
		started[h.node] = time.Now()
		if err := p.start(h); err != nil {
			return nil, err
		}
	}
	return started, nil
}

// agentsReport is what the agents' process tells of itself, since its start.
type agentsReport struct {
	Requests, Sent, Received, TooMany, Failed int64
	// Log is how often each line was logged.
	Log map[string]int
}

func (p *agentsProcess) report() agentsReport {
	t := &p.traffic
	return agentsReport{t.requests.Load(), t.sent.Load(), t.received.Load(), t.tooMany.Load(), t.failed.Load(), p.told.all()}
}

// traffic counts requests and the bytes of their bodies. Headers are not counted.
type traffic struct {
	requests, sent, received, tooMany, failed atomic.Int64
}

// countingTransport is one agent's way to the API server.
type countingTransport struct {
	http.RoundTripper
	traffic *traffic
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.traffic.requests.Add(1)
	c.traffic.sent.Add(max(0, r.ContentLength))
	response, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		c.traffic.failed.Add(1)
		return nil, err
	}
	if response.StatusCode == http.StatusTooManyRequests {
		c.traffic.tooMany.Add(1)
	}
	response.Body = &countingBody{response.Body, c.traffic}
	return response, nil
}

type countingBody struct {
	io.ReadCloser
	traffic *traffic
}

func (b *countingBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.traffic.received.Add(int64(n))
	return n, err
}

// counted counts the lines of a log, and passes on those that warn.
type counted struct {
	slog.Handler
	mu     sync.Mutex
	counts map[string]int
}

// Enabled reports that every line is counted.
func (c *counted) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle counts a line. Only the first ones of a kind are passed on: thousands of
// agents say the same.
func (c *counted) Handle(ctx context.Context, r slog.Record) error {
	const passedOn = 100
	c.mu.Lock()
	c.counts[r.Message]++
	isNew := c.counts[r.Message] <= passedOn
	c.mu.Unlock()
	if r.Level < slog.LevelWarn || !isNew {
		return nil
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs and WithGroup return a handler that counts in the same place.
func (c *counted) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup returns the handler itself.
func (c *counted) WithGroup(string) slog.Handler { return c }

func (c *counted) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]int{}
	for message, count := range c.counts {
		all[message] = count
	}
	return all
}
