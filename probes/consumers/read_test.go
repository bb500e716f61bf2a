package consumers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/test/probetest"
)

// TestMain lets this program be the process that a test reads.
func TestMain(m *testing.M) {
	if os.Getenv("TAINTLET_TEST_CONSUMER") != "" {
		hold()
	}
	os.Exit(m.Run())
}

// hold takes 64 MiB and 8 threads, says so, and waits for the end of its input.
func hold() {
	block := make([]byte, 64*mib)
	for i := 0; i < len(block); i += os.Getpagesize() {
		block[i] = 1
	}
	ready := make(chan bool)
	for range 8 {
		go func() {
			runtime.LockOSThread()
			ready <- true
			select {}
		}()
		<-ready
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadByte() //nolint:errcheck // its end is what counts
	runtime.KeepAlive(block)
	os.Exit(0)
}

func startConsumer(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe")
	command.Env = append(os.Environ(), "TAINTLET_TEST_CONSUMER=1")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()  //nolint:errcheck // it ends
		command.Wait() //nolint:errcheck // it was told to
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return command
}

// A process of this host is read as it is: what it holds, its threads, its start, its name.
func TestReadThisHost(t *testing.T) {
	t.Parallel()
	before := hostfile.Clock(unix.CLOCK_BOOTTIME)
	command := startConsumer(t)
	after := hostfile.Clock(unix.CLOCK_BOOTTIME)
	s, err := NewReader(probetest.HostAt("/")).Read(Soon, after)
	if err != nil {
		t.Skipf("processes cannot be read here: %v", err)
	}
	found := s.find(&Proc{PID: int32(command.Process.Pid), Start: startOf(t, command.Process.Pid)})
	if found == nil {
		t.Fatalf("process %d is not among %d", command.Process.Pid, len(s.Processes))
	}
	if anonymous := anonymousOf(t, command.Process.Pid); anonymous < 64*mib || found.Bytes < anonymous-8*mib || found.Bytes > anonymous+8*mib || found.Tasks < 9 || found.Command == "" || found.Group.Kind == 0 {
		t.Errorf("%+v", found)
	}
	if found.Start < before-tick || found.Start > after {
		t.Errorf("started at %s, not between %s and %s", found.Start, before, after)
	}
	if kernel := s.find(&Proc{PID: 2, Start: startOf(t, 2)}); kernel == nil || kernel.Group.Kind != KindKernel {
		t.Errorf("kthreadd is %+v", kernel)
	}
}

// anonymousOf returns what a process holds that no file has. With the race detector a
// process holds more.
func anonymousOf(t *testing.T, pid int) uint64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib * 1024
}

func startOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Skip(err)
	}
	s, err := parseStat(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.start
}

// tree is a procfs of files.
func tree(t testing.TB, processes int) probes.Host {
	t.Helper()
	h := probetest.HostAt(t.TempDir())
	write(t, h, "meminfo", "MemTotal: 1 kB\nShmem:  2048 kB\n")
	for i := range processes {
		pid := i + 1
		write(t, h, fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (app %d) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 4200 99 2000 1 1 1 1\n", pid, pid%7))
		write(t, h, fmt.Sprintf("%d/statm", pid), "9000 2000 500 1 0 1 0\n")
		write(t, h, fmt.Sprintf("%d/cgroup", pid), fmt.Sprintf("0::/kubepods/burstable/pod%s/x\n", pod(pid%20).Name))
	}
	return h
}

func write(t testing.TB, h probes.Host, name, text string) {
	t.Helper()
	path := filepath.Join(h.Proc, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadTree(t *testing.T) {
	t.Parallel()
	h := tree(t, 300)
	write(t, h, "5/stat", "garbled")
	write(t, h, "6/statm", "garbled")
	if err := os.Remove(filepath.Join(h.Proc, "7/cgroup")); err != nil { // it has just ended
		t.Fatal(err)
	}
	s, err := NewReader(h).Read(Soon, hostfile.Clock(unix.CLOCK_BOOTTIME))
	if err != nil || len(s.Processes) != 297 || s.Shared != 2*mib || s.First != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	page := uint64(os.Getpagesize())
	if got, want := s.Processes[0], (Proc{PID: 1, Tasks: 2, Start: 42 * time.Second, Bytes: 1500 * page, Command: "app 1", Group: pod(1)}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestNotReadable(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(probes.Host) error{
		"hidepid=2":  func(h probes.Host) error { return os.RemoveAll(filepath.Join(h.Proc, "1")) },
		"no meminfo": func(h probes.Host) error { return os.Remove(filepath.Join(h.Proc, "meminfo")) },
		"another namespace": func(h probes.Host) error {
			if err := os.MkdirAll(filepath.Join(h.Proc, "self/ns"), 0o700); err != nil {
				return err
			}
			return os.Symlink("pid:[4026532000]", filepath.Join(h.Proc, "self/ns/pid"))
		},
	} {
		h := tree(t, 3)
		if err := damage(h); err != nil {
			t.Fatal(err)
		}
		if s, err := NewReader(h).Read(Now, hostfile.Clock(unix.CLOCK_BOOTTIME)); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestMostProcesses(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{2: 2, 3: 0, mostProcesses: 0} {
		r := NewReader(tree(t, 3))
		r.most = most
		if s, err := r.Read(Soon, hostfile.Clock(unix.CLOCK_BOOTTIME)); err != nil || s.First != want || len(s.Processes) != min(3, most) {
			t.Errorf("at most %d: %+v, %v", most, s, err)
		}
	}
}

// fixed is a probe of memory whose samples a test makes.
type fixed struct {
	probes.PeriodOnly
	o    probes.Observation
	left float64
}

func (*fixed) Condition() probes.Condition { return probes.MemoryPressure }
func (f *fixed) Observe(context.Context) probes.Observation {
	f.o.Condition = probes.MemoryPressure
	return f.o
}
func (f *fixed) Measures(all []probes.Measure) []probes.Measure {
	return append(all, probes.Measure{Name: "available", Value: f.left}, probes.Measure{Name: "total", Value: 16 * gib})
}

// What was found stands in the samples that follow, and in nothing that decides.
func TestProbe(t *testing.T) {
	t.Parallel()
	h := tree(t, 20)
	inner := &fixed{o: probes.Observation{Level: probes.OK, Reason: "R", Message: "available 1 B"}, left: 8 * gib}
	p := Name(inner, NewReader(h))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	defer running.Wait()
	defer cancel()
	if o := p.Observe(ctx); !reflect.DeepEqual(o, inner.o) {
		t.Errorf("a good sample became %+v", o)
	}
	for pid := 100; pid < 110; pid++ {
		write(t, h, fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (hog) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 %d 99 200000 1 1 1 1\n", pid, (hostfile.Clock(unix.CLOCK_BOOTTIME)+time.Minute)/tick))
		write(t, h, fmt.Sprintf("%d/statm", pid), "900000 200000 500 1 0 1 0\n")
		write(t, h, fmt.Sprintf("%d/cgroup", pid), "0::/kubepods/pod"+uid+"/x\n")
	}
	inner.o = probes.Observation{Level: probes.Degraded, Severity: 60, Reason: "R", Message: "available 1 B"}
	inner.left = gib
	var o probes.Observation
	deadline := time.Now().Add(20 * time.Second)
	for o = p.Observe(ctx); o.Culprit.Kind == "" && time.Now().Before(deadline); o = p.Observe(ctx) {
		time.Sleep(time.Millisecond) // reading is on another goroutine
	}
	if o.Culprit.Who() != "pod "+uid || o.Culprit.Command != "hog" || !strings.HasPrefix(o.Message, "available 1 B; pod "+uid+" (hog) took up to ") {
		t.Errorf("%+v", o)
	}
	o.Culprit, o.Message = probes.Culprit{}, inner.o.Message
	if !reflect.DeepEqual(o, inner.o) {
		t.Errorf("%+v, want %+v but for the culprit", o, inner.o)
	}
	inner.o = probes.Observation{Level: probes.OK}
	if o := p.Observe(ctx); !reflect.DeepEqual(o, inner.o) {
		t.Errorf("a good sample became %+v", o)
	}
}

// A host that hides its processes says so in data, and not in the message.
func TestUnreadableProbe(t *testing.T) {
	t.Parallel()
	h := tree(t, 3)
	if err := os.RemoveAll(filepath.Join(h.Proc, "1")); err != nil {
		t.Fatal(err)
	}
	inner := &fixed{o: probes.Observation{Level: probes.Degraded, Severity: 60, Message: "low"}}
	o := Name(inner, NewReader(h)).ObserveAndRead(t.Context())
	if o.Message != "low" || o.Culprit != (probes.Culprit{Unreadable: errHidden.Error()}) {
		t.Errorf("%+v", o)
	}
}

// Far from the threshold a sample costs no allocation more than that of the probe inside.
func TestFarSampleAllocatesNothing(t *testing.T) {
	inner := &fixed{o: probes.Observation{Level: probes.OK}}
	p := Name(inner, NewReader(probetest.HostAt(t.TempDir())))
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { p.Observe(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	processes := 0
	for b.Loop() {
		s, err := NewReader(probetest.HostAt("/")).Read(Soon, hostfile.Clock(unix.CLOCK_BOOTTIME))
		if err != nil {
			b.Fatal(err)
		}
		processes = len(s.Processes)
	}
	b.ReportMetric(float64(processes), "processes")
}
