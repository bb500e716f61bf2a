package network

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/test/probetest"
)

const serverEnv = "TAINTLET_TEST_SERVER"

// BenchmarkRound measures rounds in which all is well, with twelve peers. The
// servers are another process, so that the processor time is the probe's. It
// needs a network namespace of its own:
//
//	go test -c -o /tmp/network ./probes/network
//	unshare -nm /tmp/network -test.run=- -test.bench=Round
func BenchmarkRound(b *testing.B) {
	if os.Getenv(serverEnv) != "" {
		settle(b, 12)
		fmt.Println("ready")
		time.Sleep(time.Hour) // the parent ends it
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		b.Fatal(err)
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err != nil || !prefix.Addr().IsLoopback() {
			b.Skipf("needs a network namespace of its own; this one has the address %s", a)
		}
	}
	v := &village{host: probetest.HostHere(b)}
	probetest.Sh(b, firewall)
	startServers(b, v)
	b.Run("all", func(b *testing.B) { v.rounds(b, v.probe(b)) })
	for _, class := range verdict.Classes() {
		others := slices.DeleteFunc(verdict.Classes(), func(c verdict.Class) bool { return c == class })
		b.Run(string(class), func(b *testing.B) { v.rounds(b, v.probe(b, others...)) })
	}
}

// rounds measures one round after the other.
func (v *village) rounds(b *testing.B, p *Probe) {
	v.observe(b.Context(), p)
	bytes, packets := loopbackSent(b)
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	b.ReportAllocs()
	for b.Loop() {
		v.observe(b.Context(), p)
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	bytesAfter, packetsAfter := loopbackSent(b)
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(cpu)/1e3/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(bytesAfter-bytes)/float64(b.N), "bytes/op")
	b.ReportMetric(float64(packetsAfter-packets)/float64(b.N), "packets/op")
}

// startServers starts the village in another process and fills in its addresses.
func startServers(b *testing.B, v *village) {
	b.Helper()
	v.addresses(12)
	child := exec.CommandContext(b.Context(), "/proc/self/exe", "-test.run=-", "-test.bench=Round", "-test.benchtime=1x")
	child.Env = append(os.Environ(), serverEnv+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	output, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if scanner.Text() == "ready" {
			return
		}
	}
	b.Fatal("the servers did not start")
}

// loopbackSent is what lo has sent so far.
func loopbackSent(b *testing.B) (bytes, packets int64) {
	b.Helper()
	text, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] == "lo:" {
			bytes, _ = strconv.ParseInt(fields[1], 10, 64)
			packets, _ = strconv.ParseInt(fields[2], 10, 64)
		}
	}
	return bytes, packets
}
