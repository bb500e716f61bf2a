package consumers

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

var update = flag.Bool("update", false, "write what is told of each story into testdata/texts.golden")

const (
	mib = 1 << 20
	gib = 1 << 30
)

// scene is a host whose processes a test starts, grows and ends, and the Course that follows
// it. Its samples are far from the threshold until near or bad is called.
type scene struct {
	t      *testing.T
	course Course
	now    time.Duration
	host   Host
	shared float64
	procs  []Proc
	reads  []time.Duration
}

func newScene(t *testing.T, r Resource) *scene {
	s := &scene{t: t, course: Course{Resource: r}, now: time.Hour, host: Host{Left: 12 * gib, Total: 16 * gib}}
	if r == Tasks {
		s.host = Host{Left: 32_000, Total: 32_768}
	}
	s.start(1, Group{KindUnit, "init.scope"}, "systemd", 12*mib)
	s.start(2, Group{Kind: KindKernel}, "kthreadd", 0)
	s.start(700, Group{KindUnit, "kubelet.service"}, "kubelet", 90*mib)
	s.now += time.Hour
	return s
}

func (s *scene) start(pid int32, g Group, command string, bytes float64) {
	s.procs = append(s.procs, Proc{PID: pid, Tasks: 1, Start: s.now, Command: command, Group: g})
	slices.SortFunc(s.procs, func(a, b Proc) int { return cmp.Compare(a.PID, b.PID) })
	if s.course.Resource == Tasks {
		s.host.Left--
	}
	s.grow(pid, bytes)
}

func (s *scene) find(pid int32) *Proc {
	return &s.procs[slices.IndexFunc(s.procs, func(p Proc) bool { return p.PID == pid })]
}

func (s *scene) grow(pid int32, bytes float64) {
	s.find(pid).Bytes += uint64(bytes)
	if s.course.Resource == Memory {
		s.host.Left -= bytes
	}
}

func (s *scene) end(pid int32) {
	if s.course.Resource == Memory {
		s.host.Left += float64(s.find(pid).Bytes)
	} else {
		s.host.Left += float64(s.find(pid).Tasks)
	}
	s.procs = slices.DeleteFunc(s.procs, func(p Proc) bool { return p.PID == pid })
}

// sample takes a sample of that severity after a time, reads what is wanted, and returns what
// the next sample tells.
func (s *scene) sample(after time.Duration, severity int) Finding {
	s.now += after
	o := probes.Observation{Level: probes.OK, Severity: severity, Hysteresis: severity > 0}
	if severity >= 50 {
		o.Level, o.Hysteresis = probes.Degraded, false
	}
	if s.course.Follow(o, s.host, s.now) != Nothing {
		s.reads = append(s.reads, s.now)
		s.course.Add(&Snapshot{At: s.now, Processes: slices.Clone(s.procs), Shared: s.shared})
	}
	return s.course.Finding()
}

const far, near, bad = 0, 20, 60

func pod(n int) Group { return Group{KindPod, fmt.Sprintf("7c0f2b1e-3d4a-4f5b-8c6d-%012d", n)} }

// stories are what happens to a host, in the order of texts.golden.
func stories() []struct {
	name string
	tell func(t *testing.T) Finding
} {
	return []struct {
		name string
		tell func(t *testing.T) Finding
	}{
		{"a pod takes memory slowly, from before the threshold is near", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(1000, pod(1), "java", gib)
			s.sample(4*time.Second, far)
			s.grow(1000, 400*mib)
			s.sample(time.Second, near)
			for range 40 {
				s.grow(1000, 100*mib)
				s.sample(time.Second, near)
			}
			return s.sample(100*time.Millisecond, bad)
		}},
		{"a new process takes it at once", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(900, pod(2), "postgres", 6*gib)
			s.sample(4*time.Second, far)
			s.now += 100 * time.Millisecond
			s.start(1000, pod(1), "java", 5*gib)
			return s.sample(time.Second, bad)
		}},
		{"a process that already ran takes it at once, and goes on", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(900, pod(2), "postgres", 4*gib)
			s.start(1000, pod(1), "java", gib)
			s.sample(4*time.Second, far)
			s.grow(1000, 4*gib)
			s.sample(time.Second, bad)
			s.grow(1000, gib)
			return s.sample(time.Second, bad)
		}},
		{"a process that already ran takes it at once, and stops", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(900, pod(2), "postgres", 4*gib)
			s.start(1000, pod(1), "java", gib)
			s.sample(4*time.Second, far)
			s.grow(1000, 4*gib)
			s.sample(time.Second, bad)
			s.grow(700, 100*mib)
			return s.sample(time.Second, bad)
		}},
		{"the same, and all others are too small to have taken it", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(900, pod(2), "postgres", gib)
			s.start(1000, pod(1), "java", gib)
			s.sample(4*time.Second, far)
			s.grow(1000, 4*gib)
			s.sample(time.Second, bad)
			s.grow(700, 100*mib)
			return s.sample(time.Second, bad)
		}},
		{"threads of a process that already ran, at once", func(t *testing.T) Finding {
			s := newScene(t, Tasks)
			s.start(1000, pod(1), "java", 0)
			s.sample(4*time.Second, far)
			s.find(1000).Tasks, s.host.Left = 3000, s.host.Left-2999
			return s.sample(time.Second, bad)
		}},
		{"a pod of several processes", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.sample(4*time.Second, far)
			s.now += time.Millisecond * 10
			for pid := range int32(8) {
				s.start(1000+pid, pod(1), "worker", gib)
			}
			return s.sample(time.Second, bad)
		}},
		{"forked processes share their pages: no more than the host lost, and than is in use", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.sample(4*time.Second, far)
			left := s.host.Left
			s.now += 100 * time.Millisecond
			for i := range 10 {
				s.start(int32(1000+i), Group{KindUnit, "forks.service"}, "python3", 1.7*gib)
			}
			s.host.Left = left - 1.5*gib
			return s.sample(time.Second, bad)
		}},
		{"two take about as much", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.sample(4*time.Second, far)
			s.now += time.Millisecond * 10
			s.start(1000, pod(1), "java", 3*gib)
			s.start(1001, pod(2), "node", 3.5*gib)
			return s.sample(time.Second, bad)
		}},
		{"nobody takes a third", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.sample(4*time.Second, far)
			s.now += time.Millisecond * 10
			for n := range int32(8) {
				s.start(1000+n, pod(int(n)), "app", gib)
			}
			return s.sample(time.Second, bad)
		}},
		{"tmpfs takes it", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(1000, pod(1), "java", gib)
			s.sample(4*time.Second, far)
			s.sample(time.Second, near)
			s.shared, s.host.Left = 4*gib, s.host.Left-4*gib
			return s.sample(20*time.Second, bad)
		}},
		{"it ends", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.sample(4*time.Second, far)
			s.now += time.Millisecond * 10
			s.start(1000, pod(1), "java", 5*gib)
			s.sample(time.Second, bad)
			s.end(1000)
			return s.sample(10*time.Second, bad)
		}},
		{"it moves to another control group", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(1000, pod(1), "java", gib)
			s.sample(4*time.Second, far)
			s.sample(time.Second, near)
			s.grow(1000, 4*gib)
			s.find(1000).Group = Group{KindUnit, "batch.scope"}
			return s.sample(5*time.Second, bad)
		}},
		{"a process of the host", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.sample(4*time.Second, far)
			s.now += time.Millisecond * 10
			s.start(1000, Group{KindProcess, "stress-ng"}, "stress-ng", 5*gib)
			return s.sample(time.Second, bad)
		}},
		{"a restart takes no more than before", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(1000, pod(1), "java", 6*gib)
			s.start(1001, pod(2), "node", mib)
			s.sample(4*time.Second, far)
			s.sample(time.Second, near)
			s.end(1000)
			s.start(1100, pod(1), "java", 6*gib)
			s.grow(1001, gib)
			return s.sample(20*time.Second, bad)
		}},
		{"nearly nothing happens at the threshold", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(1000, pod(1), "java", 10*gib)
			s.sample(4*time.Second, far)
			s.sample(time.Second, near)
			s.grow(1000, 20*mib)
			return s.sample(20*time.Second, bad)
		}},
		{"the host was never seen healthy", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(1000, pod(1), "java", 10*gib)
			return s.sample(time.Second, bad)
		}},
		{"the host was never seen healthy, and tmpfs holds most", func(t *testing.T) Finding {
			s := newScene(t, Memory)
			s.start(1000, pod(1), "java", gib)
			s.shared = 10 * gib
			s.sample(time.Second, bad)
			return s.sample(time.Second, bad)
		}},
		{"a fork bomb", func(t *testing.T) Finding {
			s := newScene(t, Tasks)
			s.start(1000, pod(1), "bash", 0)
			s.sample(4*time.Second, far)
			s.now += time.Millisecond * 10
			for n := range int32(5000) {
				s.start(2000+n, pod(1), "bash", 0)
			}
			return s.sample(time.Second, bad)
		}},
		{"threads of a unit, for a day", func(t *testing.T) Finding {
			s := newScene(t, Tasks)
			s.sample(4*time.Second, far)
			s.sample(time.Second, near)
			s.find(700).Tasks, s.host.Left = 20_000, s.host.Left-19_999
			s.sample(3*time.Second, bad)
			return s.sample(30*time.Hour, bad)
		}},
		{"more processes than are read", func(t *testing.T) Finding {
			s := newScene(t, Tasks)
			s.sample(4*time.Second, far)
			s.now += time.Millisecond * 10
			for n := range int32(5000) {
				s.start(2000+n, pod(1), "bash", 0)
			}
			f := s.sample(time.Second, bad)
			f.First = mostProcesses
			return f
		}},
	}
}

// TestTexts compares what is told of each story, and whom that names, with testdata/texts.golden, which a
// reviewer reads.
func TestTexts(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, story := range stories() {
		f := story.tell(t)
		fmt.Fprintf(&all, "%s:\n  %s\n  names %q\n", story.name, f.Text(), f.Culprit().Who())
	}
	const golden = "testdata/texts.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if all.String() != string(want) {
		t.Errorf("run with -update and read the diff:\n%s", all.String())
	}
}

// Far from the threshold nothing is read, and near it seldom.
func TestWhenItIsRead(t *testing.T) {
	t.Parallel()
	s := newScene(t, Memory)
	check := func(step string, want int) {
		t.Helper()
		if len(s.reads) != want {
			t.Errorf("%s: %d readings, want %d", step, len(s.reads), want)
		}
		s.reads = nil
	}
	for range 1000 {
		s.sample(time.Second, far)
	}
	check("far for a while", 0)
	for range 599 {
		s.sample(time.Second, near)
	}
	check("near for 10 minutes", 1)
	for range 1200 {
		s.sample(time.Second, near)
	}
	check("near for 20 minutes more", 2)
	s.sample(time.Second, bad)
	check("bad", 1)
	for range 1000 {
		s.sample(time.Second, bad)
	}
	if len(s.reads) < 30 || len(s.reads) > 70 {
		t.Errorf("bad for 1000 s: %d readings", len(s.reads))
	}
	if s.sample(time.Second, far) != (Finding{}) || s.course.base != nil {
		t.Error("a healthy host is remembered")
	}
}

// The baseline follows a host that is near its threshold for days: what was taken long ago
// does not hide who takes it now.
// What the kernel, or a balloon of the hypervisor, takes within one sample is held by no
// process, so that nobody is named.
func TestWhatNoProcessHolds(t *testing.T) {
	t.Parallel()
	for range 20 { // maps have no order
		s := newScene(t, Memory)
		s.sample(time.Second, 0)
		s.host.Left -= 11 * gib
		if f := s.sample(time.Second, 60); f.Certainty != Unseen {
			t.Fatalf("%+v", f)
		}
	}
}

func TestBaselineIsRenewed(t *testing.T) {
	t.Parallel()
	s := newScene(t, Memory)
	s.start(1000, pod(1), "java", gib)
	s.start(1001, pod(2), "node", gib)
	s.sample(time.Second, far)
	s.sample(time.Second, near)
	s.grow(1000, 4*gib)
	for range 3000 {
		s.sample(time.Second, near)
	}
	s.grow(1001, gib)
	f := s.sample(time.Second, bad)
	if f.Culprit().Name != pod(2).Name || f.In > 21*time.Minute {
		t.Errorf("%+v", f)
	}
}

// A second incident does not begin with the culprit of the first.
func TestFindingOfAnEarlierIncident(t *testing.T) {
	t.Parallel()
	s := newScene(t, Memory)
	s.sample(time.Second, far)
	s.now += time.Second
	s.start(1000, pod(1), "java", 5*gib)
	if f := s.sample(time.Second, bad); f.Certainty != Named {
		t.Fatalf("%+v", f)
	}
	s.sample(time.Second, near)
	if want := s.course.Follow(probes.Observation{Level: probes.Degraded, Severity: bad}, s.host, s.now+time.Second); want != Now {
		t.Errorf("wants %d", want)
	}
	if f := s.course.Finding(); f != (Finding{}) {
		t.Errorf("%+v", f)
	}
}

// Over any time, reading takes 1 % of one CPU, and three readings.
func TestAllowance(t *testing.T) {
	t.Parallel()
	var a allowance
	const cost = 150 * time.Millisecond
	var spent time.Duration
	const span = time.Hour
	for now := time.Duration(0); now < span; now += 100 * time.Millisecond {
		if a.has(Nothing, now) {
			t.Fatal("nothing was wanted")
		}
		if a.has(Now, now) { // as a condition that comes and goes
			a.pay(now, cost)
			spent += cost
		}
	}
	if most := span/100 + 3*cost; spent > most {
		t.Errorf("%s of %s, at most %s", spent, span, most)
	}
	if a.has(Soon, span) {
		t.Error("what is not urgent reads in advance")
	}
}
