package monitoring

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// workers is how many Nodes the incident has. What happens to them:
//   - worker-1 runs out of memory, and recovers by way of the value between the
//     thresholds;
//   - worker-2 has a fork bomb, again and again;
//   - worker-3 cannot read its memory;
//   - worker-4 gets an invalid configuration;
//   - worker-5 vanishes;
//   - worker-6 runs out of memory, and somebody removes its taint again and again;
//   - worker-7 has too many tasks, and a person has paused it;
//   - worker-8 reaches no DNS while its peers do;
//   - worker-9 has too many tasks, and so have all its peers: the fleet brake holds its taint
//     back.
const workers = 10

// The incident lasts an hour of synthetic time, after some minutes in which all is well.
// sickAfter is its worst moment.
const (
	healthyFor = 5 * time.Minute
	sickAfter  = 40 * time.Minute
	endsAfter  = time.Hour
)

// tick is how often the hosts change.
const tick = time.Second

// incident is what was recorded of the agents, and a Prometheus that has it.
type incident struct {
	prometheus *Prometheus
	// start, sick and end are the beginning, the worst moment and the end.
	start, sick, end time.Time
}

// newIncident plays the incident and hands its record to a Prometheus.
func newIncident(t *testing.T) *incident {
	t.Helper()
	var all []*worker
	for n := range workers {
		all = append(all, newWorker(t, nodeName(n+1)))
	}
	r := newRecording(t)
	i := &incident{}
	// The race detector of Go 1.26 crashes when two processors run timers of one bubble at once:
	// they share a race context (runtime.(*timer).unlockAndRun).
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) { i.play(t, all, r) })
	i.prometheus = StartPrometheus(t, r.blocks())
	return i
}

func nodeName(n int) string { return fmt.Sprintf("worker-%d", n) }

// play plays the incident and scrapes the agents all the time.
func (i *incident) play(t *testing.T, all []*worker, r *recording) {
	t.Helper()
	for n, w := range all {
		w.start(t.Context(), nodeName(n+1))
	}
	time.Sleep(scrapeInterval)
	i.start = time.Now()
	i.sick, i.end = i.start.Add(sickAfter), i.start.Add(endsAfter)
	for since := time.Duration(0); since <= endsAfter; since += tick {
		if since%scrapeInterval == 0 {
			for n, w := range all {
				page, err := w.metrics(t.Context())
				r.scraped(nodeName(n+1), page, err == nil, time.Now())
			}
		}
		if err := story(t, all, since); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tick)
	}
	for _, w := range all {
		if err := w.end(); err != nil {
			t.Error(err)
		}
	}
}

// story is what happens at a time.
func story(t *testing.T, all []*worker, since time.Duration) error {
	t.Helper()
	minute := since.Minutes()
	if minute < healthyFor.Minutes() {
		return nil
	}
	all[0].memory(leak(minute))
	all[1].host.Tasks(bombs(minute))
	all[5].memory(math.Max(2.5, 50-6*math.Max(0, minute-10)))
	at := func(m float64) bool { return since == time.Duration(m*float64(time.Minute)) }
	switch {
	case at(9):
		all[2].host.Write("proc/meminfo", "MemTotal: 16\x00")
	case at(10):
		all[3].refuse(errors.New("memory.availablePercent: must be a number"))
	case at(12):
		return all[4].end()
	case at(20), at(20.5), at(21), at(21.5): // the taint, and then its stand-in
		return all[5].node.edit(t.Context(), "kubectl-taint", func(node *taints.Node) { node.Taints = nil })
	case at(6):
		return all[6].node.edit(t.Context(), "kubectl-annotate", func(node *taints.Node) {
			annotations := map[string]string{taints.PausedAnnotation: "true"}
			for key, value := range node.Annotations {
				annotations[key] = value
			}
			node.Annotations = annotations
		})
	case at(18):
		all[6].host.Tasks(31000)
	case at(15):
		all[7].network.fail(verdict.DNS, true)
	case at(24.5): // before its own: heard in the next round of the network
		all[8].network.share(probes.PIDPressure, probes.Degraded)
	case at(25):
		all[8].host.Tasks(31000)
	case at(35):
		all[8].network.share(probes.PIDPressure, probes.OK)
		all[8].host.Tasks(100)
	case at(46):
		all[7].network.fail(verdict.DNS, false)
	}
	return nil
}

// leak is the percentage of memory that is available on worker-1.
func leak(minute float64) float64 {
	switch {
	case minute < 41:
		return math.Max(3, 50-4*(minute-healthyFor.Minutes()))
	case minute < 46:
		return 6 // between the thresholds
	}
	return 60
}

// bombs is how many tasks worker-2 has.
func bombs(minute float64) int {
	for _, begin := range []float64{8, 14, 24, 36} {
		if since := minute - begin; since >= 0 && since < 2 {
			return min(32000, 100+int(32000*since))
		}
	}
	return 100
}

// pressure is the file of tasks that waited that long altogether.
func pressure(some, full time.Duration) string {
	const line = "%s avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"
	return fmt.Sprintf(line+line, "some", some.Microseconds(), "full", full.Microseconds())
}
