package sampling

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

const gib = 1 << 30

// moment is what the files of a host say at one time.
type moment struct {
	total, available, hugePages float64 // bytes
	unused                      float64 // bytes of total that programs can neither hold nor have
	some, full                  uint64  // µs of stalls since the boot
	allocstalls                 uint64
	tasks, limit                int
}

// course is how a host's memory or tasks went, from the begin of a start or of an
// overload. Before its begin a host is as at its begin.
type course struct {
	name, host string
	condition  probes.Condition
	at         func(since time.Duration) moment
	lasts      time.Duration
}

// outcome is what an agent made of a course.
type outcome struct {
	tainted  time.Duration // in all
	setAt    time.Duration // the first taint; -1: none
	message  string        // of the first taint
	then     moment
	clearsBy time.Duration // how long after its set the first taint was cleared; 0: never
	near     int           // samples between the thresholds
	patches  int           // writes of the Node after the first minute
}

// warmUp is how long an agent has watched a host before its course begins.
const warmUp = 40 * time.Second

// play has an agent watch a course that begins some time after one of its samples: its
// probe reads files, its runner says when, its decider decides.
func (c course) play(t *testing.T, cfg *config.Config, phase time.Duration) (result outcome) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "taintlet-course-") //nolint:usetesting // t.TempDir is on a disk, which is slow
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the next boot removes it
	result.setAt = -1
	synctest.Test(t, func(t *testing.T) {
		condition, _ := cfg.Condition(c.condition)
		r := &runner{
			probe: hostprobes.NewProbe(probes.Host{Root: dir, Proc: dir, Sys: dir})(condition),
			start: time.Now(), period: condition.Common().Period.Duration,
			minInterval: condition.Common().MinInterval, step: condition.Common().MinInterval, followUp: condition.Common().FollowUp,
		}
		r.decided.Store(int32(probes.OK))
		w := newWatched(cfg)
		files := hostFiles{dir: dir}
		begin := r.start.Add(warmUp + phase)
		for {
			since := time.Since(begin)
			if since > c.lasts {
				break
			}
			now := c.at(max(0, since))
			files.write(t, now)
			o := r.probe.Observe(t.Context())
			if o.Level == probes.Unknown {
				t.Fatal(o.Message)
			}
			if o.Hysteresis {
				result.near++
			}
			if since < time.Minute {
				w.patches = 0
			}
			before := w.state.Level(c.condition)
			w.step(decide.Inputs{Observations: []probes.Observation{o}})
			level := w.state.Level(c.condition)
			switch {
			case before == probes.OK && level > probes.OK && result.setAt < 0:
				result.setAt, result.message, result.then = since, o.Message, now
			case before > probes.OK && level == probes.OK && result.clearsBy == 0:
				result.clearsBy = since - result.setAt
			}
			r.decided.Store(int32(w.state.Requested(c.condition)))
			next := r.due(time.Now(), o)
			if level > probes.OK {
				result.tainted += next
			}
			time.Sleep(next)
		}
		result.patches = w.patches
	})
	return result
}

// watched is a decider and its Node, on which every write lands at once.
type watched struct {
	policy *decide.Policy
	state  decide.State
	node   *decide.Node
	// patches is how many writes there were.
	patches int
}

// newWatched returns one to which all conditions were well: without a sample of each, no
// condition is written.
func newWatched(cfg *config.Config) *watched {
	w := &watched{
		policy: cfg.Policy(), state: decide.New(decide.Boot{ID: "1", At: time.Now()}, "agent"),
		node: decide.Read(&taints.Node{Name: "host", UID: "1", ResourceVersion: "1"}),
	}
	for _, name := range cfg.Names() {
		w.step(decide.Inputs{Observations: []probes.Observation{{Condition: name, Level: probes.OK, Reason: "Well", Message: "well"}}})
	}
	return w
}

func (w *watched) step(in decide.Inputs) {
	in.Node, in.Facts, in.Slot = w.node, taints.Facts{StandInPrefix: w.policy.StandInPrefix}, decide.SlotNone
	var d decide.Decision
	if w.state, d = decide.Step(w.policy, w.state, in, time.Now()); d.Desired != nil {
		w.patches++
		w.node = decide.Read(d.Desired.ApplyTo(w.node.Node))
		w.step(decide.Inputs{Written: true})
	}
}

// hostFiles are the files of a host.
type hostFiles struct {
	dir   string
	wrote moment
}

func (f *hostFiles) write(t *testing.T, m moment) {
	t.Helper()
	if m == f.wrote {
		return
	}
	f.wrote = m
	files := map[string]string{}
	if m.total > 0 {
		kB := func(bytes float64) int64 { return int64(bytes / 1024) }
		files["meminfo"] = fmt.Sprintf("MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\nAnonPages: %d kB\nShmem: 0 kB\nHugePages_Total: %d\nHugepagesize: 2048 kB\nActive: 1024 kB\nVmallocTotal: 34359738367 kB\n",
			kB(m.total), kB(m.available), kB(m.available), kB(m.total-m.available-m.hugePages-m.unused), kB(m.hugePages)/2048)
		files["pressure/memory"] = fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", m.some, m.full)
		files["vmstat"] = fmt.Sprintf("allocstall_normal %d\n", m.allocstalls)
	}
	if m.limit > 0 {
		files["loadavg"] = fmt.Sprintf("0.10 0.20 0.30 1/%d 4242\n", m.tasks)
		files["sys/kernel/pid_max"] = fmt.Sprintf("%d\n", m.limit)
		files["sys/kernel/threads-max"] = "127000\n"
	}
	for name, text := range files {
		path := filepath.Join(f.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// line returns a value that goes from one to another within a time.
func line(from, to float64, within, since time.Duration) float64 {
	return from + (to-from)*min(1, max(0, since.Seconds()/within.Seconds()))
}

// takes is a program that takes available memory, in GiB, within some time.
func takes(total, from, to float64, within time.Duration) func(time.Duration) moment {
	return func(since time.Duration) moment {
		return moment{total: total * gib, available: line(from, to, within, since) * gib}
	}
}

// again begins a course anew after each interval.
func again(every time.Duration, at func(time.Duration) moment) func(time.Duration) moment {
	return func(since time.Duration) moment { return at(since % every) }
}

// givesBack lets a program that took memory or tasks end after some time.
func givesBack(after time.Duration, at func(time.Duration) moment) func(time.Duration) moment {
	return func(since time.Duration) moment {
		if since > after {
			return at(0)
		}
		return at(since)
	}
}

// threads is a program that starts threads within some time.
func threads(from, to float64, within time.Duration) func(time.Duration) moment {
	return func(since time.Duration) moment {
		return moment{tasks: int(line(from, to, within, since)), limit: 32768}
	}
}

func forks(from float64, perSecond float64) func(time.Duration) moment {
	return threads(from, 32768, time.Duration((32768-from)/perSecond*float64(time.Second)))
}

// hugePages are made at run time.
func hugePages(total, from, size float64, within time.Duration) func(time.Duration) moment {
	return func(since time.Duration) moment {
		made := line(0, size, within, since) * gib
		return moment{total: total * gib, available: from*gib - made, hugePages: made}
	}
}

// steps returns a value that holds until the next, as recorded.
func steps[T any](at []time.Duration, values []T) func(time.Duration) T {
	return func(since time.Duration) T {
		next, _ := slices.BinarySearch(at, since+1)
		return values[max(0, next-1)]
	}
}

// recordedMemory is a recording of the probe of memory, of a host with 24 GiB.
func recordedMemory(t *testing.T, name string) func(time.Duration) moment {
	t.Helper()
	file, err := os.Open(filepath.Join("../../probes/memory/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	var at []time.Duration
	var values []moment
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		m := moment{total: 24684096 << 10, unused: 24684096<<10 - 23*gib}
		var ms int64
		if _, err := fmt.Sscan(lines.Text(), &ms, &m.available, &m.some, &m.full, &m.allocstalls); err != nil {
			t.Fatal(err)
		}
		m.available *= 1024
		at, values = append(at, time.Duration(ms)*time.Millisecond), append(values, m)
	}
	return steps(at, values)
}

// recordedHour is an hour of a host of two processors on which programs were compiled and
// clusters ran their tests, as probes recorded it.
func recordedHour(t *testing.T, condition probes.Condition) func(time.Duration) moment {
	t.Helper()
	file, err := os.Open("testdata/hour.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var begin time.Time
	var at []time.Duration
	var values []moment
	for _, row := range rows[1:] {
		if row[1] != string(condition) {
			continue
		}
		now, err := time.Parse(time.RFC3339Nano, row[0])
		if err != nil {
			t.Fatal(err)
		}
		if begin.IsZero() {
			begin = now
		}
		inputs := map[string]float64{}
		for input := range strings.FieldsSeq(row[7]) {
			name, value, _ := strings.Cut(input, "=")
			if inputs[name], err = strconv.ParseFloat(value, 64); err != nil {
				t.Fatal(err)
			}
		}
		at = append(at, now.Sub(begin))
		values = append(values, moment{
			total: inputs["total"], available: inputs["available"],
			limit: int(inputs["task_limit"]), tasks: int(inputs["task_limit"] - inputs["free_tasks"]),
		})
	}
	return steps(at, values)
}
