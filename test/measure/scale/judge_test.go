package scale

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// good returns figures of a run that holds everything.
func good(nodes int) *figures {
	n := float64(nodes)
	quiet := latency{Requests: 100, P99: 5 * time.Millisecond}
	fine := spell{Seconds: 60, Foreign: quiet, Leases: leaseReport{latency: quiet}, Cost: cost{
		Seconds: 60, Cores: map[string]float64{harnessName: 0.1, kubeletsName: 0.2, foreignName: 0.1, agentsName: 1},
		Late: map[string]latency{harnessName: quiet, agentsName: quiet},
	}}
	in := func(name string) *incident {
		i := &incident{Name: name, Bad: nodes, Tainted: nodes, Last: 5 * time.Second, Sent: int64(1000 * n), Received: int64(9000 * n), spell: fine}
		i.Requests = 3 * nodes
		return i
	}
	restarted := fine
	restarted.Requests = 5 * nodes
	return &figures{
		Nodes: nodes, CPUs: 2,
		Quiet:     idle{Seconds: 600, Heartbeats: 12, PerHour: map[string]float64{"patch nodes/status": 12, "list endpointslices": 6}, Sent: 1000, Received: 2000},
		Incidents: []*incident{in("brake on"), in("brake off"), in("one zone, brake off")},
		Outage:    outage{spell: fine},
		Restart:   restart{spell: restarted, Held: nodes, MostWrites: 1, MostInAll: 1},
		Rollout:   rollout{spell: fine},
	}
}

func failed(lines []line) []string {
	var all []string
	for _, l := range lines {
		if l.verdict == no {
			all = append(all, l.what)
		}
	}
	return all
}

func TestJudge(t *testing.T) {
	t.Parallel()
	if bad := failed(judge(good(1000), []*figures{good(100)})); bad != nil {
		t.Errorf("a good run fails: %q", bad)
	}
	for _, l := range judge(good(1000), []*figures{good(100)}) {
		if l.verdict != yes {
			t.Errorf("%s: %s", l.what, l.verdict)
		}
	}
	for name, c := range map[string]struct {
		spoil func(f *figures)
		want  []string
	}{
		"heartbeats": {func(f *figures) { f.Quiet.Heartbeats = 12.3 }, []string{"idle: at most 12.24 heartbeats per node and hour (12, and 2 % for the jitter of the intervals)"}},
		"more asked": {func(f *figures) { f.Quiet.PerHour["get nodes"] = 2 }, []string{"idle: an agent of a larger fleet makes at most 5 % more requests"}},
		"less asked": {func(f *figures) { f.Quiet.PerHour["list endpointslices"] = 2 }, nil},
		"late taint": {func(f *figures) { f.Incidents[1].Last = 16 * time.Second }, []string{"mass incident, brake off: last taint in time"}},
		"no taint":   {func(f *figures) { f.Incidents[1].Tainted = 999 }, []string{"mass incident, brake off: last taint in time"}},
		"no zone":    {func(f *figures) { f.Incidents[2].Tainted = 999 }, []string{"mass incident, one zone, brake off: last taint in time"}},
		"own work":   {func(f *figures) { f.Incidents[1].Cost.Cores = map[string]float64{kubeletsName: 0.5} }, []string{"this program's own work takes less than a quarter of the machine"}},
		"late timers": {func(f *figures) {
			f.Incidents[1].Cost.Late = map[string]latency{agentsName: {Requests: 1, P99: 101 * time.Millisecond}}
		}, []string{"its timers are at most 100 ms late, p99"}},
		"rolled out":  {func(f *figures) { f.Rollout.TaintChanges = 1 }, []string{"configuration rolled out: no taint changes"}},
		"its leases":  {func(f *figures) { f.Rollout.Leases.Late = 1 }, []string{"configuration rolled out: no node lease late"}},
		"restarted":   {func(f *figures) { f.Restart.Leases.Late = 1 }, []string{"rolling restart: no node lease late"}},
		"429":         {func(f *figures) { f.Incidents[0].Foreign.TooMany = 1 }, []string{"mass incident, brake on: no 429 at a foreign client"}},
		"slow":        {func(f *figures) { f.Incidents[0].Foreign.P99 = time.Second }, []string{"mass incident, brake on: its p99 under 1 s"}},
		"late lease":  {func(f *figures) { f.Incidents[0].Leases.Late = 1 }, []string{"mass incident, brake on: no node lease late"}},
		"taints":      {func(f *figures) { f.Restart.TaintChanges = 1 }, []string{"rolling restart: no taint changes"}},
		"writes":      {func(f *figures) { f.Restart.MostInAll = 2 }, []string{"rolling restart: at most one write of each agent"}},
		"outage":      {func(f *figures) { f.Outage.TaintChanges = 1 }, []string{"crash of the API server: no taint changes"}},
		"stopped":     {func(f *figures) { f.Stopped = "no memory" }, []string{"every part was measured"}},
		"square":      {func(f *figures) { f.Restart.Requests = 50000 }, []string{"requests of a rolling restart: grows at most with the power 1.1 of the nodes"}},
		"per agent":   {func(f *figures) { f.Quiet.Heartbeats, f.Quiet.Seconds = 14, 600 }, []string{"idle: at most 12.24 heartbeats per node and hour (12, and 2 % for the jitter of the intervals)", "heartbeats of one agent: does not grow with the nodes"}},
		"brake holds": {func(f *figures) { f.Incidents[0].Tainted = 500 }, nil},
	} {
		f := good(1000)
		c.spoil(f)
		if got := failed(judge(f, []*figures{good(100)})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q fail, want %q", name, got, c.want)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	if law, ok := fit([]point{{100, 300}, {1000, 30000}, {5000, 750000}}); !ok || math.Abs(law.exponent-2) > 1e-9 || math.Abs(law.at(10)-3) > 1e-9 {
		t.Errorf("a square, 3 at 10: %+v, %v", law, ok)
	}
	if _, ok := fit([]point{{100, 300}, {100, 310}}); ok {
		t.Error("one size has an exponent")
	}
}

func TestLatencyOf(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	var all []asked
	for i := range 200 {
		all = append(all, asked{begin.Add(time.Duration(i) * time.Second), time.Duration(i) * time.Millisecond, 200})
	}
	all[10].code, all[20].code = 429, 0
	got := latencyOf(all, begin, begin.Add(99*time.Second))
	if want := (latency{100, 1, 1, 50 * time.Millisecond, 99 * time.Millisecond, 99 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The bound of a mass incident is 15 s up to 1,000 nodes and 90 s at 5,000.
func TestLastTaintWithin(t *testing.T) {
	t.Parallel()
	for nodes, want := range map[int]time.Duration{100: 15 * time.Second, 1000: 15 * time.Second, 3000: 52500 * time.Millisecond, 5000: 90 * time.Second} {
		if got := lastTaintWithin(nodes); got != want {
			t.Errorf("%d nodes: %s, want %s", nodes, got, want)
		}
	}
}

// A partial run is judged by itself alone, and no other run is judged by it.
func TestAPartialRunIsNotFull(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"parts":    {"--parts", "incident,restarts"},
		"duration": {"--idle", "30s"},
		"observed": {"--nodes", "5000", "--observed", "60s"},
	} {
		o, err := parse(args)
		if err != nil {
			t.Fatal(err)
		}
		f := good(1000)
		f.Partial = o.partial
		for _, l := range judge(f, []*figures{good(100)}) {
			if (l.what == "every part was measured" || strings.Contains(l.what, "grow")) && l.verdict != notJudged {
				t.Errorf("%s: %s: %s", name, l.what, l.verdict)
			}
		}
		if got := newestFull([]*figures{f, good(100)}); len(got) != 1 || got[0].Nodes != 100 {
			t.Errorf("%s: it counts as a full run", name)
		}
	}
	for _, args := range [][]string{nil, {"--nodes", "1000", "--idle", "20m", "--limit", "1h"}} {
		if o, err := parse(args); err != nil || o.partial != "" {
			t.Errorf("%q: partial %q, %v", args, o.partial, err)
		}
	}
	if _, err := parse([]string{"--parts", "incidents"}); err == nil || !strings.Contains(err.Error(), "incidents") {
		t.Errorf("a part that does not exist: %v", err)
	}
}
