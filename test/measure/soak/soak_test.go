package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

var (
	isAsked    = flag.Bool("soak", false, "run TestSoak: a week with incidents, accelerated")
	daysOfWork = flag.Float64("days", 7, fmt.Sprintf("how many days of work the agent does, %d times as fast", pace))
	isShort    = flag.Bool("short", false, "two days, in four minutes")
	seed       = flag.Uint64("seed", 1, "decides when which incident happens")
	leak       = flag.String("leak", "", "build a mistake into the agent, which has to be found: memory, goroutines or descriptors")
	real       = flag.Duration("real", 0, "watch the shipped program at its own pace for this time, and no accelerated week")
	results    = flag.String("results", "soak/results", "where results are written, seen from test/measure")
)

// TestSoak watches one agent for a long time, from outside: its memory, its goroutines and its
// descriptors must not grow. It writes what it measured.
func TestSoak(t *testing.T) {
	if !*isAsked {
		t.Skip("takes 15 minutes: make soak")
	}
	if _, known := leaks()[*leak]; *leak != "" && !known {
		t.Fatalf("--leak %s: must be memory, goroutines or descriptors", *leak)
	}
	if *isShort {
		*daysOfWork = 2
	}
	t.Chdir("..") // as deep as the tests for which bed has its helpers
	f := &figures{Origin: measure.Here(".")}
	s := newStage(t)
	if *real > 0 {
		s.hour(f)
	} else {
		s.days(f)
	}
	f.Tenths = tenths(f.Samples)
	lines := judge(f)
	text := render(f, lines)
	path, err := measure.Write(*results, f.Date+"-"+f.name(), f, text)
	if err != nil {
		t.Error(err)
	}
	t.Logf("%s\n%s", path, text)
	if !allHold(lines) {
		t.Error("a demand does not hold")
	}
}

const (
	watchedNode = "watched"
	// peerUser is who the peers are in the cluster: what they ask for is not counted.
	peerUser = "soak-peer"
	// peers are agents on this host too, at ports of their own. An agent reads three
	// EndpointSlices, and a slice has one port: so there are two.
	peers    = 2
	graceful = 10 * time.Second
)

// stage is the cluster with everything on it but the agents.
type stage struct {
	t       *testing.T
	module  string
	folder  string // everybody may read it
	cluster *cluster.Cluster
	hostIP  netip.Addr
	// ports are those of the watched agent, of the peers, and of the gate before the
	// API server.
	ports   [1 + peers + 1]uint16
	shipped *bed.Manifest // what the manifest gives the agents
	config  string        // the shipped configuration, a file
}

// must ends the test with the first error.
func (s *stage) must(errs ...error) {
	s.t.Helper()
	for _, err := range errs {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// newStage makes the cluster with its Nodes, alive, and taintlet's permissions and
// policies as the chart has them with a rule that evicts, and slots for that.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, folder: t.TempDir()}
	s.must(os.Chmod(s.folder, 0o755), os.Chmod(filepath.Dir(s.folder), 0o755)) //nolint:gosec // the agent is another user
	var err error
	s.module, err = filepath.Abs("../..")
	s.must(err)
	s.hostIP = s.ownAddress()
	s.lastingPorts()
	ctx := t.Context()
	s.cluster = cluster.New(t, cluster.Options{AuditLog: true, AuditOnly: []string{bed.User}})
	values := filepath.Join(s.folder, "values.yaml")
	s.must(os.WriteFile(values, []byte("config:\n  "+strings.ReplaceAll(strings.TrimSpace(rules()), "\n", "\n  ")+"\n"), 0o600))
	objects, err := cluster.ReadManifest(bed.ManifestFile(t, bed.Render(t, "-f", values,
		"--set", fmt.Sprintf("namespace.create=true,cleanup.afterUninstall=false,cleanup.stale=false,evict.slots=%d", slots))))
	s.must(err, s.cluster.InstallRulesOf(ctx, objects), s.cluster.GrantAsAgent(ctx, peerUser), s.cluster.InstallKeep(ctx))
	if s.shipped, err = bed.ShippedManifest(); err == nil {
		s.config, err = s.shipped.WriteConfig(s.folder)
	}
	s.must(err)
	for i, port := range s.ports[:1+peers] {
		s.cluster.Register(t, nodeOf(i))
		s.must(bed.CreateSlices(ctx, s.cluster, s.slice(nodeOf(i), port)))
	}
	return s
}

// nodeOf is the watched Node, or that of a peer, by its number from 1.
func nodeOf(number int) string {
	if number == 0 {
		return watchedNode
	}
	return fmt.Sprint("peer-", number)
}

// lastingPorts takes ports that are free, and that the kernel gives to no client
// while nobody listens there (ip_local_port_range in ip(7)): a program that is
// started again finds its port as it left it.
func (s *stage) lastingPorts() {
	var first, last uint16
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	s.must(err)
	_, err = fmt.Sscan(string(text), &first, &last)
	s.must(err)
	taken := 0
	for port := first - 1; port > 1024 && taken < len(s.ports); port -= 1 + rand.N(uint16(7)) {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		s.must(listener.Close())
		s.ports[taken] = port
		taken++
	}
	if taken < len(s.ports) {
		s.t.Fatalf("no %d ports are free below %d", len(s.ports), first)
	}
}

// ownAddress is an address of this host at which agents reach each other.
func (s *stage) ownAddress() netip.Addr {
	addresses, err := net.InterfaceAddrs()
	s.must(err)
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			return prefix.Addr()
		}
	}
	s.t.Fatal("this host has no IPv4 address but loopback, where no agent has peers")
	return netip.Addr{}
}

// slice is an EndpointSlice of the agents: those of some Nodes at one port of this
// host.
func (s *stage) slice(name string, port uint16) *discoveryv1.EndpointSlice {
	slice := bed.NewSlice(bed.Namespace, name, "taintlet", "metrics", port)
	bed.AddEndpoint(slice, name, s.hostIP.String())
	return slice
}

// taints returns the taints of taintlet's that are on the watched Node.
func (s *stage) taints() (own []string) {
	for _, t := range s.cluster.GetNode(s.t, watchedNode).Spec.Taints {
		if isOwn(t) {
			own = append(own, t.ToString())
		}
	}
	return own
}

// isOwn reports whether taintlet sets such a taint, itself or by a stand-in.
func isOwn(t corev1.Taint) bool {
	wellKnown := []string{corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable}
	return slices.Contains(wellKnown, t.Key) || strings.HasPrefix(t.Key, taints.DefaultStandInPrefix+"/")
}

// program builds taintlet as it is shipped, but that its peers may be on its host, and with
// those swaps.
func (s *stage) program(name string, swaps ...swap) string {
	path, err := swappedProgram(s.t.Context(), s.module, s.folder, name, append(oneHost(), swaps...))
	s.must(err)
	return path
}

// run starts the agent of a Node, by its number, with the environment of the chart and, where
// this program may choose, as its user.
func (s *stage) run(program string, number int, as *rest.Config, config string, flags ...string) (*process.Process, error) {
	node := nodeOf(number)
	kubeconfig := filepath.Join(s.folder, node+".kubeconfig")
	if err := bed.WriteIdentity(kubeconfig, as); err != nil {
		return nil, err
	}
	command := bed.Unprivileged(program, append([]string{"--kubeconfig=" + kubeconfig, "--config=" + config, "--node-name=" + node,
		fmt.Sprintf("--listen=:%d", s.ports[number])}, flags...)...)
	command.Env = append(os.Environ(), s.shipped.Env(node, s.hostIP.String())...)
	p, err := process.Start("the agent of "+node, command, filepath.Join(s.folder, node+".log"))
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() {
		if s.t.Failed() && number == 0 {
			s.t.Log(p.Tail(20))
		}
		_ = p.Kill() // it may have ended
	})
	return p, nil
}

// runPeer starts a peer, by its number from 1.
func (s *stage) runPeer(program string, number int) (*process.Process, error) {
	as, err := s.cluster.Config(peerUser)
	if err != nil {
		return nil, err
	}
	return s.run(program, number, as, s.config)
}

// address is where the watched agent serves.
func (s *stage) address() string { return fmt.Sprintf("%s:%d", s.hostIP, s.ports[0]) }

// awaitReady waits until the watched agent may write its Node.
func (s *stage) awaitReady(ctx context.Context, agent *process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := newScraper(s.address()).client
	return agent.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := process.Get(ctx, client, "http://"+s.address()+"/readyz")
		return err
	})
}

const (
	observeEvery = 5 * time.Second
	scrapeEvery  = 15 * time.Second
)

// hour watches the shipped program at its own pace, on this host as it is: with the
// manifest's configuration, peers and scrapes.
func (s *stage) hour(f *figures) {
	f.Mode = "Real " + strings.TrimSuffix(real.String(), "0m0s")
	program := s.program("shipped")
	for number := 1; number <= peers; number++ {
		_, err := s.runPeer(program, number)
		s.must(err)
	}
	as, err := bed.IdentityOn(s.t.Context(), s.cluster, watchedNode)
	s.must(err)
	agent, err := s.run(program, 0, as, s.config)
	s.must(err, s.awaitReady(s.t.Context(), agent))
	measure.Say("the agent is watched for %s, as process %d", *real, agent.PID())
	s.watch(f, agent)
	f.Taints = s.taints()
}

// watch observes and scrapes the agent for that time.
func (s *stage) watch(f *figures, agent *process.Process) {
	begin, length := time.Now(), *real
	scraper := newScraper(s.address())
	defer func() { f.Took, f.Work = time.Since(begin), scraper.work(length.Seconds()) }()
	s.must(scraper.scrape(s.t.Context()))
	observes, scrapes, end := time.NewTicker(observeEvery), time.NewTicker(scrapeEvery), time.NewTimer(length)
	defer observes.Stop()
	defer scrapes.Stop()
	defer end.Stop()
	for {
		select {
		case <-agent.Ended():
			f.Ended = fmt.Sprintf("it ended after %s: %v", time.Since(begin).Round(time.Second), agent.Err())
			return
		case <-scrapes.C:
			if err := scraper.scrape(s.t.Context()); err != nil {
				measure.Say("a scrape was not answered: %v", err)
			}
		case now := <-observes.C:
			one, err := observe(agent.PID())
			s.must(err)
			one.At = now.Sub(begin).Seconds() / length.Seconds()
			f.Samples = append(f.Samples, scraper.complete(one))
		case <-end.C:
			return
		}
	}
}

func patchOptions() metav1.PatchOptions { return metav1.PatchOptions{FieldManager: "soak"} }
