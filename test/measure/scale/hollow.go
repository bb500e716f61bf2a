package scale

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/assembly"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/bed"
)

const (
	// apiEvery is how often the network's probe makes a TLS connection to the API
	// server: apiEvery in probes/network.
	apiEvery    = 59 * time.Second
	apiPatience = 2 * time.Second
	// agentDialTimeout is dialTimeout in taints/apiserver.
	agentDialTimeout = 3 * time.Second
)

// directory knows the agents that run, by Node: it carries what peers say in place
// of GET /peer.
type directory struct {
	mu     sync.RWMutex
	agents map[string]*fleet.Fleet
}

func newDirectory() *directory { return &directory{agents: map[string]*fleet.Fleet{}} }

func (d *directory) put(node string, f *fleet.Fleet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f == nil {
		delete(d.agents, node)
		return
	}
	d.agents[node] = f
}

// ask returns what the agent of a Node answers; false: it does not run.
func (d *directory) ask(node string) (verdict.Answer, bool) {
	d.mu.RLock()
	f := d.agents[node]
	d.mu.RUnlock()
	if f == nil {
		return verdict.Answer{}, false
	}
	var answer verdict.Answer
	err := json.Unmarshal(f.Page(), &answer)
	return answer, err == nil
}

// script is what the probe of one condition finds, whichever agent asks it.
type script struct {
	condition probes.Condition
	level     atomic.Int32
	woken     chan struct{} // has room for one
}

func newScript(condition probes.Condition) *script {
	s := &script{condition: condition, woken: make(chan struct{}, 1)}
	s.level.Store(int32(probes.OK))
	return s
}

// says makes the probe find that level from now on, and wakes it as a trigger of
// the kernel would.
func (s *script) says(level probes.Level) {
	s.level.Store(int32(level))
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// scripted is a probe that finds what its script says.
type scripted struct {
	*script
}

func (s scripted) Condition() probes.Condition { return s.condition }
func (s scripted) Wake() <-chan struct{}       { return s.woken }
func (s scripted) Run(context.Context)         {}

func (s scripted) Observe(context.Context) probes.Observation {
	level := probes.Level(s.level.Load())
	o := probes.Observation{Condition: s.condition, Level: level, Reason: "Enough", Message: "available 9.1 GiB of 15.6 GiB (58.3 %)"}
	if level > probes.OK {
		o.Severity, o.Certain, o.Reason, o.Message = 60, true, "Scarce", "available 412 MiB of 15.6 GiB (2.6 %), below 5 %"
	}
	return o
}

// talking is the scripted probe of the network: it finds all well, asks the peers in
// each round and shakes hands with the API server, as the real one does.
type talking struct {
	scripted
	directory *directory
	dialer    *net.Dialer
	apiDue    time.Time
	cluster   verdict.Cluster
}

// Join keeps the fleet, which knows the peers.
func (t *talking) Join(cluster verdict.Cluster) { t.cluster = cluster }

// Observe reports what each peer answers, and asks nothing about any of them.
func (t *talking) Observe(ctx context.Context) probes.Observation {
	in := t.cluster.Surroundings()
	r := verdict.Round{}
	for _, peer := range in.Peers {
		if answer, found := t.directory.ask(peer.Node); found {
			r.Peers = append(r.Peers, verdict.PeerResult{Node: peer.Node, Answer: &answer})
		}
	}
	if now := time.Now(); now.After(t.apiDue) {
		t.apiDue = now.Add(apiEvery)
		shakeHands(ctx, t.dialer, in.APIServer)
	}
	t.cluster.Consult(ctx, &verdict.Verdict{Round: r, Own: verdict.Answer{
		Classes: map[verdict.Class]bool{verdict.Route: true, verdict.API: true, verdict.Peers: true}, Lossy: 0, Reach: 100,
	}})
	return t.scripted.Observe(ctx)
}

// shakeHands makes a TLS connection and ends it. What comes of it does not matter
// here: that the API server is away is told by others.
func shakeHands(ctx context.Context, dialer *net.Dialer, server string) {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	c, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer c.Close() //nolint:errcheck // nothing more was to be sent
	_ = tls.Client(c, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent
		MinVersion:         tls.VersionTLS12,
		CurvePreferences:   []tls.CurveID{tls.X25519, tls.CurveP256},
	}).HandshakeContext(ctx)
}

// hollow is a host with nothing in it but its agent. The agent is all real but for
// its probes.
type hollow struct {
	node    string
	hostIP  netip.Addr
	dialer  *net.Dialer
	boot    decide.Boot
	scripts map[probes.Condition]*script
	starts  int
	stop    func() // ends the agent and waits for its end; nil: none runs
}

func newHollow(node string, number int) *hollow {
	h := &hollow{
		node: node, hostIP: addressOf(number), dialer: dialerOf(addressOf(number)), scripts: map[probes.Condition]*script{},
		boot: decide.Boot{ID: "boot-of-" + node, At: time.Now()},
	}
	h.dialer.Timeout = agentDialTimeout
	for _, name := range config.Default().Names() {
		h.scripts[name] = newScript(name)
	}
	return h
}

// addressOf is the address of a host by its number.
func addressOf(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 128 + byte(number>>16), byte(number >> 8), byte(number)})
}

// start starts the agent.
func (h *hollow) start(p *agentsProcess, restConfig *rest.Config) error {
	cfg, err := config.HostSchema().Load(p.setup.Config)
	if err != nil {
		return err
	}
	h.starts++
	ctx, cancel := context.WithCancel(context.Background())
	a, disconnect, err := assembly.New(ctx, assembly.Options{
		Node: h.node, Namespace: bed.Namespace, RestConfig: restConfig, DryRun: assembly.DryRunNone,
		HostIP: h.hostIP, Listen: netip.AddrPortFrom(netip.IPv6Unspecified(), bed.AgentPort),
		NewProbe: h.newProbe(p.directory),
		Config:   cfg, Reload: config.HostSchema().Reloader(p.setup.Config, cfg.Hash),
		Log: p.log, Instance: fmt.Sprintf("%s-%d", h.node, h.starts), Boot: h.boot, Now: time.Now,
		Version: "scale",
	})
	if err != nil {
		cancel()
		return err
	}
	p.directory.put(h.node, a.Fleet)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, nil) }()
	h.stop = func() {
		p.directory.put(h.node, nil)
		cancel()
		if err := <-done; err != nil {
			p.log.Error("agent ended with an error", "node", h.node, "error", err)
		}
		disconnect()
		h.stop = nil
	}
	return nil
}

func (h *hollow) newProbe(d *directory) func(config.Condition) probes.Probe {
	return func(c config.Condition) probes.Probe {
		s := scripted{h.scripts[c.Name]}
		if c.Name == probes.NetworkUnavailable {
			return &talking{scripted: s, directory: d, dialer: h.dialer}
		}
		return s
	}
}
