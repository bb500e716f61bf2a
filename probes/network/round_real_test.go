package network

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/probetest"
)

// firewall is where the tests drop packets.
const firewall = `
ip link set lo up
ip link add up0 type veth peer name tor0
ip addr add 10.0.0.2/24 dev up0
ip link set up0 up
ip link set tor0 up
ip route add default via 10.0.0.1
nft add table inet t
nft add chain inet t out { type filter hook output priority 0 ; }
`

// inVillage returns a village of its own network, with this firewall; nil: the test ran in another process.
func inVillage(t *testing.T, peers int, tools ...string) *village {
	t.Helper()
	h, inside := probetest.InOwnNetwork(t, append(tools, "nft")...)
	if !inside {
		return nil
	}
	probetest.Sh(t, firewall)
	v := settle(t, peers)
	v.host = h
	return v
}

// counters returns how many packets each counter of the firewall has counted.
func counters(t *testing.T) (packets []int) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "nft", "list", "chain", "inet", "t", "out").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(output)) {
		if _, after, isCounter := strings.Cut(line, "counter packets "); isCounter {
			n := -1
			_, _ = fmt.Sscan(after, &n)
			packets = append(packets, n)
		}
	}
	return packets
}

// reads gives the outcomes of a round in one line, without those that are well.
func notWell(r *verdict.Round) string {
	var words []string
	for _, c := range verdict.Classes() {
		if result := r.Results[c]; result.Outcome != verdict.Well {
			words = append(words, fmt.Sprintf("%s %s", c, []string{"not known", "well", "failed"}[result.Outcome]))
		}
	}
	return strings.Join(words, ", ")
}

// one runs one round within five seconds.
func (v *village) one(t *testing.T, p *Probe) verdict.Round {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r := p.round(ctx, v.Surroundings)
	if err := ctx.Err(); err != nil {
		t.Errorf("the round did not end in time: %v", err)
	}
	return r
}

// Each class fails by itself when what it asks is cut off, and no other does.
func TestEachClassFailsByItself(t *testing.T) {
	v := inVillage(t, 12)
	if v == nil {
		return
	}
	kubelets := listen(t, fmt.Sprint("0.0.0.0:", otherPort))
	t.Cleanup(func() { _ = kubelets.Close() })
	p := v.probe(t)
	p.patience = patience // a busy machine answers late
	if r := v.one(t, p); notWell(&r) != "" || len(r.Peers) != 12 || r.Late {
		t.Fatalf("at first: %s; %+v", notWell(&r), r)
	}
	for _, cut := range []struct{ name, begin, end, want string }{
		{"the default route goes", "ip route del default", "ip route add default via 10.0.0.1", "route failed"},
		{"DNS is dropped", "nft add rule inet t out udp dport 53 drop", "nft flush chain inet t out", "dns failed"},
		{"DNS is rejected", "nft add rule inet t out udp dport 53 reject", "nft flush chain inet t out", "dns failed"},
		{"the overlay is cut", "nft add rule inet t out ip daddr 127.3.0.0/16 drop", "nft flush chain inet t out", "pods failed"},
		{"kube-proxy is silent", "nft add rule inet t out tcp dport 10256 drop", "nft flush chain inet t out", "local failed"},
		{"the API server is silent", "nft add rule inet t out ip daddr 127.2.0.1 drop\nnft add rule inet t out udp dport 53 drop", "nft flush chain inet t out", "api failed, dns failed"},
		{"the peers are cut off", "nft add rule inet t out ip daddr 127.1.0.0/24 ip daddr != 127.1.0.0 drop", "nft flush chain inet t out", "peers failed"},
		{"the peers' connections are reset here", "nft add rule inet t out ip daddr 127.1.0.0/24 ip daddr != 127.1.0.0 meta l4proto tcp reject with tcp reset", "nft flush chain inet t out", "peers failed"},
		{"those to the agents alone", "nft add rule inet t out ip daddr 127.1.0.0/24 ip daddr != 127.1.0.0 tcp dport 9410 reject with tcp reset", "nft flush chain inet t out", ""},
		{"those to the DNS pods", "nft add rule inet t out ip daddr 127.3.0.0/16 meta l4proto tcp reject with tcp reset", "nft flush chain inet t out", "pods not known"},
		{"half of them", "nft add rule inet t out ip daddr 127.1.0.1-127.1.0.6 drop", "nft flush chain inet t out", "peers not known"},
	} {
		probetest.Sh(t, cut.begin)
		if r := v.one(t, p); notWell(&r) != cut.want {
			t.Errorf("%s: %q, want %q: %+v", cut.name, notWell(&r), cut.want, r.Results)
		}
		probetest.Sh(t, cut.end)
		if r := v.one(t, p); notWell(&r) != "" {
			t.Errorf("after %s: %s: %+v", cut.name, notWell(&r), r.Results)
		}
	}
	probetest.Sh(t, "ip addr del 127.0.0.1/8 dev lo")
	if r := v.one(t, p); r.Outcome(verdict.Self) != verdict.Failed {
		t.Errorf("the own address is gone: %+v", r.Results[verdict.Self])
	}
}

// Of peers with IPv4 and IPv6, in either order, each family can be lost alone, and IPv6 where there
// is no other. Where no packet above 200 bytes comes through, connections are made and no answer comes.
func TestPeersWithBothFamiliesAreLostByOne(t *testing.T) {
	v := inVillage(t, 6)
	if v == nil {
		return
	}
	var both, v6 []verdict.Peer
	for i, peer := range v.Peers {
		second := netip.MustParseAddr(fmt.Sprintf("fd00:1::%d", i+1))
		probetest.Sh(t, fmt.Sprintf("ip addr add %s/128 dev lo nodad", second))
		l := listen(t, netip.AddrPortFrom(second, peerPort).String())
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })}
		go server.Serve(l) //nolint:errcheck // its end
		t.Cleanup(func() { _ = server.Close() })
		v6 = append(v6, verdict.Peer{Node: peer.Node, Address: netip.AddrPortFrom(second, peerPort), Other: otherPort})
		if both = append(both, peer, v6[i]); i%2 == 1 {
			both[2*i], both[2*i+1] = v6[i], peer
		}
	}
	for _, cut := range []struct {
		peers          []verdict.Peer
		rule           string
		reached, hangs int
	}{
		{both, "ip6 daddr fd00:1::/64", 0, 0}, {both, "ip daddr 127.1.0.1-127.1.0.6", 0, 0}, {both, "ip6 daddr fd00:1::1", 5, 0},
		{both, "tcp sport 9410 meta length > 200", 6, 6}, {v6, "ip6 daddr fd00:1::/64", 0, 0},
	} {
		v.Peers = cut.peers
		p := v.probe(t)
		p.patience = patience
		v.one(t, p)
		v.one(t, p)
		probetest.Sh(t, "nft add rule inet t out "+cut.rule+" drop")
		r := v.one(t, p)
		reached, hangs := 0, 0
		for _, peer := range r.Peers {
			if peer.Reached {
				reached++
			}
			if peer.Hangs {
				hangs++
			}
		}
		if len(r.Peers) != 6 || reached != cut.reached || hangs != cut.hangs {
			t.Errorf("%s: %d of %d reached, %d hang: %+v", cut.rule, reached, len(r.Peers), hangs, r.Results[verdict.Peers])
		}
		probetest.Sh(t, "nft flush chain inet t out")
	}
}

// While all is well a round asks four of twelve peers, and hears and counts those
// alone. As soon as it fails to reach one, or this host has trouble, it asks all.
func TestQuietRoundsOfTheProbe(t *testing.T) {
	v := inVillage(t, 12)
	if v == nil {
		return
	}
	p := v.probe(t)
	p.patience = patience // a busy machine answers late
	asked := func() (n int) {
		v.observe(t.Context(), p)
		for _, peer := range p.peers.Found {
			if !peer.Carried {
				n++
			}
		}
		if len(p.peers.Found) != 12 {
			t.Errorf("%d peers count, %d were asked", len(p.peers.Found), n)
		}
		return n
	}
	quiet := func(after string) {
		rounds := 0
		for asked() == 12 {
			if rounds++; rounds > 20 {
				t.Fatalf("%s: all are asked for ever", after)
			}
		}
		if rounds < 4 {
			t.Errorf("%s: all were asked in %d rounds", after, rounds)
		}
		for range 6 {
			if n := asked(); n != 3 {
				t.Errorf("%s, when it was quiet: %d peers were asked", after, n)
			}
		}
	}
	quiet("at first")
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.1.0.0/24 ip daddr != 127.1.0.0 drop")
	if n := asked(); n != 12 {
		t.Errorf("cut off: %d peers were asked", n)
	}
	probetest.Sh(t, "nft flush chain inet t out")
	quiet("after the cut")
	v.Troubled = true
	if n := asked(); n != 12 {
		t.Errorf("in trouble: %d peers were asked", n)
	}
	v.Troubled = false
	quiet("after the trouble")
	probetest.Sh(t, "nft add rule inet t out udp dport 53 drop")
	asked() // it does not know yet
	probetest.Sh(t, "nft flush chain inet t out")
	if n := asked(); n != 12 {
		t.Errorf("after DNS failed: %d peers were asked", n)
	}
	quiet("after DNS failed")
	v.page.Store(strings.Replace(answer, `"dns":true`, `"dns":false`, 1))
	if n := asked(); n != 12 {
		t.Errorf("peers say something new: %d were asked", n)
	}

	quiet("after the change")
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.1.0.0/24 drop")
	began := time.Now()
	p.peers.Ask(t.Context(), &v.Surroundings, 5*time.Second)
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("the others were asked when the first ones had taken all their time: %s", took)
	}
}

// While all is well some classes are asked in every second round. What fails is
// seen in the second round at the latest, and is then asked in each.
func TestQuietRoundsTakeTurns(t *testing.T) {
	v := inVillage(t, 12)
	if v == nil {
		return
	}
	p := v.probe(t)
	rules := []string{"udp dport 53", "ip daddr 127.3.0.1", "tcp dport 10256 tcp flags == syn", "ip daddr 127.1.0.0 tcp flags == syn"}
	// asked returns in how many of so many rounds the classes sent something.
	asked := func(rounds int) []int {
		counts := make([]int, len(rules))
		for range rounds {
			probetest.Sh(t, "nft flush chain inet t out")
			for _, rule := range rules {
				probetest.Sh(t, "nft add rule inet t out "+rule+" counter")
			}
			v.observe(t.Context(), p)
			for i, packets := range counters(t) {
				counts[i] += min(1, packets)
			}
		}
		return counts
	}
	if got := asked(4); !slices.Equal(got, []int{4, 4, 4, 4}) {
		t.Errorf("dns, pods, local and self were asked in %v of the first 4 rounds", got)
	}
	if got := asked(10); !slices.Equal(got, []int{10, 10, 5, 5}) {
		t.Errorf("dns, pods, local and self were asked in %v of 10 quiet rounds", got)
	}
	for range 2 { // what is not asked is as it was, and not late
		p.self.Took = time.Hour
		v.observe(t.Context(), p)
		if text := notWell(&p.newest); text != "" || p.late > time.Minute {
			t.Errorf("in a quiet round: %s; late by %s", text, p.late)
		}
	}
	probetest.Sh(t, "nft flush chain inet t out\nnft add rule inet t out udp dport 53 reject")
	v.observe(t.Context(), p)
	v.observe(t.Context(), p)
	if outcome := p.newest.Results[verdict.DNS].Outcome; outcome != verdict.Failed {
		t.Errorf("DNS is %v in the second round after it failed", outcome)
	}
	if got := asked(4); !slices.Equal(got, []int{4, 4, 4, 4}) {
		t.Errorf("dns, pods, local and self were asked in %v of 4 rounds after trouble", got)
	}
}

// Rules lost before any round was well leave what cannot be told.
func TestFirstRoundAccusesNothing(t *testing.T) {
	v := inVillage(t, 3)
	if v == nil {
		return
	}
	probetest.Sh(t, "nft add rule inet t out drop\nip route del default")
	p := v.probe(t)
	r := v.one(t, p)
	for c, result := range r.Results {
		if result.Outcome == verdict.Failed {
			t.Errorf("%s: %+v", c, result)
		}
	}
	if len(r.Peers) != 0 {
		t.Errorf("peers that were never reached: %+v", r.Peers)
	}
}

// A firewall that blocks our port leaves the kubelet's.
func TestSecondPort(t *testing.T) {
	v := inVillage(t, 3)
	if v == nil {
		return
	}
	v.Peers[2].Other = 0
	p := v.probe(t)
	for range 2 { // that the second port answers is known from the first round on
		var known []bool
		for _, peer := range v.one(t, p).Peers {
			known = append(known, peer.OtherKnown)
		}
		if !slices.Equal(known, []bool{true, true, false}) {
			t.Errorf("second ports known: %v", known)
		}
	}
	probetest.Sh(t, fmt.Sprintf("nft add rule inet t out tcp dport %d drop\nnft add rule inet t out ip daddr 127.1.0.2 drop", peerPort))
	var got []string
	for _, peer := range v.one(t, p).Peers {
		got = append(got, fmt.Sprintf("%s %t %t %t", peer.Node, peer.Reached, peer.ReachedOther, peer.OtherKnown))
	}
	if want := []string{"node-01 false true true", "node-02 false false true", "node-03 false false false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Where our port was never open, the kubelets are not asked at all, and our port less
// and less often. Once it is open, each kubelet is asked once.
func TestKubeletsAreLeftAlone(t *testing.T) {
	v := inVillage(t, 12)
	if v == nil {
		return
	}
	p := v.probe(t, verdict.API, verdict.DNS, verdict.Pods, verdict.Local, verdict.Self)
	p.patience = 50 * time.Millisecond
	first, second := fmt.Sprintf("tcp dport %d tcp flags == syn", peerPort), fmt.Sprintf("tcp dport %d tcp flags == syn", otherPort)
	probetest.Sh(t, "nft add rule inet t out "+second+" counter\nnft add rule inet t out "+first+" counter drop")
	var last verdict.Verdict
	for range 20 {
		r := v.one(t, p)
		last = p.evaluator.Next(r)
	}
	if n := counters(t); n[0] != 0 || n[1] < 36 || n[1] > 12*8 {
		t.Errorf("the kubelets were asked %d times, and the peers %d times in 20 rounds", n[0], n[1])
	}
	if o := last.Observation; o.Message != "none of 12 peers was ever reached at TCP port 9410" {
		t.Errorf("%+v", o)
	}
	probetest.Sh(t, "nft flush chain inet t out\nnft add rule inet t out "+second+" counter")
	for range 60 { // 5 min: each is asked that often at least
		if v.one(t, p); len(p.peers.Found) == 12 {
			break
		}
	}
	for range 3 {
		v.one(t, p)
	}
	if n := counters(t)[0]; n != 12 || len(p.peers.Found) != 12 {
		t.Errorf("%d peers count, and their kubelets were asked %d times, want once each", len(p.peers.Found), n)
	}
}

// A quarter of the packets is lost: the kernel sends segments again, and says so.
func TestRetransmitsAreSeen(t *testing.T) {
	v := inVillage(t, 12)
	if v == nil {
		return
	}
	p := v.probe(t, verdict.API, verdict.DNS, verdict.Pods, verdict.Local)
	p.patience = patience
	lossy := func(rounds int) (n int) {
		for range rounds {
			for _, peer := range v.one(t, p).Peers {
				if peer.Retransmits > 0 {
					n++
				}
			}
		}
		return n
	}
	if n := lossy(3); n != 0 {
		t.Errorf("%d connections of 36 had retransmits without loss", n)
	}
	probetest.Sh(t, fmt.Sprintf("nft add rule inet t out tcp dport %d numgen random mod 4 == 0 drop", peerPort))
	if n := lossy(6); n < 7 || n > 65 {
		t.Errorf("%d connections of 72 had retransmits", n)
	}
}

// Whatever is silent, a round ends in time and leaves no goroutine and no
// connection.
func TestRoundEndsAndLeavesNothing(t *testing.T) {
	v := inVillage(t, 12, "ss")
	if v == nil {
		return
	}
	p := v.probe(t)
	p.patience = patience
	v.one(t, p)
	v.one(t, p)
	if output, err := exec.CommandContext(t.Context(), "ss", "-Htan", "state", "time-wait").Output(); err != nil || len(output) > 0 {
		t.Errorf("connections in TIME_WAIT: %v\n%s", err, output)
	}
	before := runtime.NumGoroutine()
	probetest.Sh(t, "nft add rule inet t out drop")
	begin := time.Now()
	v.one(t, p)
	if took := time.Since(begin); took < patience || took > roundTime+100*time.Millisecond {
		t.Errorf("a silent network took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	begin = time.Now()
	v.observe(ctx, p)
	if took := time.Since(begin); took > time.Second {
		t.Errorf("a round whose context ended took %v", took)
	}
	for range 50 { // servers notice late
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}

// A process that stood still does not notice that answers came in time.
func TestRoundThatStoodStillIsLate(t *testing.T) {
	v := inVillage(t, 2)
	if v == nil {
		return
	}
	p := v.probe(t)
	v.one(t, p)
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.3.0.1 drop")
	if r := v.one(t, p); r.Late || r.Outcome(verdict.Pods) != verdict.Failed {
		t.Errorf("a round with a silent target is late: %t, %+v", r.Late, r.Results)
	}
	stop := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("sleep 0.3; kill -STOP %d; sleep 0.8; kill -CONT %d", os.Getpid(), os.Getpid()))
	if err := stop.Start(); err != nil {
		t.Fatal(err)
	}
	r := v.one(t, p)
	if !r.Late || p.late < 500*time.Millisecond {
		t.Errorf("late %t, by %v", r.Late, p.late)
	}
	if err := stop.Wait(); err != nil {
		t.Fatal(err)
	}
	if r := v.one(t, p); r.Late {
		t.Errorf("still late, by %v", p.late)
	}
}

// The first SYN to the own address is lost, so the kernel sends it again after a
// second. The probe cannot tell this from a host that is slow.
func TestLateControlProbeMakesARoundLate(t *testing.T) {
	v := inVillage(t, 2)
	if v == nil {
		return
	}
	p := v.probe(t)
	p.patience = patience
	v.one(t, p)
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.1.0.0 drop")
	flush := time.AfterFunc(300*time.Millisecond, func() { probetest.Sh(t, "nft flush chain inet t out") })
	defer flush.Stop()
	if r := v.one(t, p); !r.Late || r.Outcome(verdict.Self) != verdict.Well || p.late < 900*time.Millisecond {
		t.Errorf("late %t, by %v: %+v", r.Late, p.late, r.Results[verdict.Self])
	}
}

// A round whose context has ended shows nothing, and nobody is told.
func TestEndedRoundIsNotTold(t *testing.T) {
	v := inVillage(t, 2)
	if v == nil {
		return
	}
	p := v.probe(t)
	judge := &recorder{level: probes.OK}
	p.evaluator = judge
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v.observe(ctx, p)
	if !judge.round.Late || v.report != nil {
		t.Errorf("late %t, report %+v", judge.round.Late, v.report)
	}
}

// A host that was late gives its answers more time, up to what the context leaves.
func TestDeadlinesWiden(t *testing.T) {
	v := inVillage(t, 2)
	if v == nil {
		return
	}
	p := v.probe(t, verdict.DNS, verdict.API)
	v.one(t, p)
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.3.0.1 drop")
	for _, test := range []struct{ late, from, to time.Duration }{
		{0, 500 * time.Millisecond, time.Second},
		{600 * time.Millisecond, 1100 * time.Millisecond, 2 * time.Second},
		{time.Minute, 2300 * time.Millisecond, 4800 * time.Millisecond},
	} {
		shortest := time.Hour
		for try := 0; try < 10 && shortest > test.to; try++ { // other programs make a round longer
			p.late = test.late
			begin := time.Now()
			v.one(t, p)
			shortest = min(shortest, time.Since(begin))
		}
		if shortest < test.from || shortest > test.to {
			t.Errorf("late by %v: a silent target took %v", test.late, shortest)
		}
	}
}

// The API server is asked rarely while all is well, and in each round with trouble.
func TestAPIServerIsAskedWhenItMatters(t *testing.T) {
	v := inVillage(t, 2)
	if v == nil {
		return
	}
	p := v.probe(t)
	p.patience = patience // a busy machine answers late
	asked := func(rounds int) (n int32) {
		before := v.handshakes.Load()
		for range rounds {
			if r := v.one(t, p); r.Outcome(verdict.API) != verdict.Well {
				t.Errorf("%+v", r.Results[verdict.API])
			}
		}
		return v.handshakes.Load() - before
	}
	if n := asked(10); n != 1 {
		t.Errorf("asked %d times in 10 rounds that are well", n)
	}
	now, _ := p.clock()
	p.apiDue = now
	if n := asked(10); n != 1 || p.apiDue.Sub(now) < 20*time.Second {
		t.Errorf("asked %d times when it was due, and again in %v", n, p.apiDue.Sub(now))
	}
	p.evaluator = &recorder{level: probes.Unknown}
	before := v.handshakes.Load()
	for range 4 {
		v.observe(t.Context(), p)
	}
	if n := v.handshakes.Load() - before; n != 3 {
		t.Errorf("asked %d times in the 3 rounds after a verdict that was not OK", n)
	}
	p.calm = 1
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.1.0.1 drop")
	if n := asked(3); n != 3 {
		t.Errorf("asked %d times in 3 rounds with a peer that does not answer", n)
	}
	probetest.Sh(t, "nft flush chain inet t out\nip route del default")
	if n := asked(3); n != 3 {
		t.Errorf("asked %d times in 3 rounds with trouble", n)
	}
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.2.0.1 drop")
	if r := v.one(t, p); r.Outcome(verdict.API) != verdict.Failed {
		t.Errorf("%+v", r.Results[verdict.API])
	}
	probetest.Sh(t, "nft flush chain inet t out\nip route add default via 10.0.0.1")
	if n := asked(10); n != 1 {
		t.Errorf("asked %d times in 10 rounds after the trouble", n)
	}
}

func TestRoundWithoutSurroundings(t *testing.T) {
	v := inVillage(t, 0)
	if v == nil {
		return
	}
	for _, test := range []struct {
		disabled []verdict.Class
		want     []verdict.Class
	}{
		{nil, []verdict.Class{verdict.Conntrack, verdict.DNS, verdict.Local, verdict.Route}},
		{[]verdict.Class{verdict.DNS, verdict.Local, verdict.Peers}, []verdict.Class{verdict.Conntrack, verdict.Route}},
		{verdict.Classes(), nil},
	} {
		p := New(v.host, testPeriod, test.disabled...)
		o := p.Observe(t.Context())
		needsCluster := []verdict.Class{verdict.Self, verdict.API, verdict.Pods, verdict.Peers}
		var got []verdict.Class
		for c, result := range p.newest.Results {
			switch {
			case slices.Contains(test.disabled, c):
				t.Errorf("%s is off, and found %+v", c, result)
			case !slices.Contains(needsCluster, c):
				got = append(got, c)
			case result.Outcome != verdict.NotKnown || result.Never:
				t.Errorf("%s without surroundings: %+v", c, result)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%v is off: %v, want %v", test.disabled, got, test.want)
		}
		if len(test.want) > 0 && (o.Level != probes.OK || p.newest.Results[verdict.Route].Detail != "default route by up0 with carrier") {
			t.Errorf("%+v: %+v", p.newest.Results, o)
		}
	}
}

// What is off is not asked in a cluster either.
func TestDisabledClassesAreNotAsked(t *testing.T) {
	v := inVillage(t, 2)
	if v == nil {
		return
	}
	p := v.probe(t, verdict.Classes()...)
	probetest.Sh(t, "nft add rule inet t out meta l4proto { tcp, udp } counter")
	v.observe(t.Context(), p)
	if n := counters(t)[0]; n != 0 {
		t.Errorf("%d packets were sent", n)
	}
	if v.handshakes.Load() != 0 || len(v.report.Own.Classes) != 0 || v.report.Own.Version != verdict.AnswerVersion {
		t.Errorf("%d handshakes, said %+v", v.handshakes.Load(), v.report.Own)
	}
}

// A report has what was found, and what the verdict asks for. The answer changes the
// sample.
func TestReport(t *testing.T) {
	v := inVillage(t, 2)
	if v == nil {
		return
	}
	p := v.probe(t)
	judge := &recorder{level: probes.OK}
	p.evaluator = judge
	v.observe(t.Context(), p)
	if peers := v.report.Round.Peers; len(peers) != 2 || peers[0].Answer == nil || !peers[0].Answer.Classes[verdict.DNS] || v.report.Leases != nil || v.report.Ask != nil {
		t.Errorf("%+v", v.report)
	}
	if own := v.report.Own; len(own.Classes) != len(verdict.Classes()) || !own.Classes[verdict.Peers] || own.Lossy != -1 {
		t.Errorf("own %+v", own)
	}
	probetest.Sh(t, "nft add rule inet t out ip daddr 127.1.0.1 drop\nip route del default")
	judge.note, judge.ask = []string{"node-02"}, []string{"node-01"}
	if o := v.observe(t.Context(), p); !slices.Equal(v.report.Leases, judge.note) || !slices.Equal(v.report.Ask, judge.ask) || o.Reason != "" || judge.round.Standings != nil {
		t.Errorf("%+v, %+v", v.report, o)
	}
	v.standings = []verdict.Standing{{Node: "node-01", Suspects: true}}
	if o := v.observe(t.Context(), p); o.Reason != "answered" || !slices.Equal(judge.round.Standings, v.standings) {
		t.Errorf("standings %+v, %+v", judge.round.Standings, o)
	}
	if well, known := v.report.Own.Classes[verdict.Route]; well || !known {
		t.Errorf("own %+v", v.report.Own)
	}
	if _, known := v.report.Own.Classes[verdict.Peers]; known || v.report.Round.Peers[0].Answer != nil || v.report.Round.Peers[1].Answer == nil {
		t.Errorf("half of the peers: %+v", v.report)
	}
}

// In taintlet once a host without carrier is not OK.
func TestNoCarrierAtTheFirstLook(t *testing.T) {
	h, inside := probetest.InOwnNetwork(t)
	if !inside {
		return
	}
	probetest.Sh(t, firewall+"ip link set tor0 down")
	o := New(h, testPeriod).Observe(t.Context())
	if o.Level != probes.Unknown || !strings.Contains(o.Message, "no carrier on up0, which has the default route") {
		t.Errorf("%+v", o)
	}
}

// recorder keeps the most recent round and asks what a test wants.
type recorder struct {
	round     verdict.Round
	note, ask []string
	level     probes.Level
}

func (r *recorder) Next(round verdict.Round) verdict.Verdict {
	r.round = round
	own := verdict.Answer{Version: verdict.AnswerVersion, Lossy: -1}
	own.Classes = round.Known(&own)
	return verdict.Verdict{Observation: probes.Observation{Level: r.level}, Round: round, Own: own, Leases: r.note, Ask: r.ask}
}

func (r *recorder) Answered(round verdict.Round) verdict.Verdict {
	v := r.Next(round)
	v.Observation.Reason = "answered"
	return v
}
