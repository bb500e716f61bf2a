package security

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// flood is the largest write that a stolen token is allowed, again and again.
type flood struct {
	what, level     string
	writes, workers int
	// write returns the bytes of the object that the API server stored.
	write func(ctx context.Context, as kubernetes.Interface, node string, number int64) (int, error)
}

func floods() []flood {
	return []flood{
		{"Events, 100 connections", bed.Account + "-background", 4000, 100, func(ctx context.Context, as kubernetes.Interface, node string, _ int64) (int, error) {
			event := ownEvent(node)
			event.Reason, event.Message = letters(reasonBytes), letters(messageBytes)
			created, err := as.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{})
			return created.Size(), err
		}},
		// Writes of one Node overtake one another: more connections write less.
		{"its Node, one connection", bed.Account, 500, 1, func(ctx context.Context, as kubernetes.Interface, node string, number int64) (int, error) {
			patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "%d"}}}`, taints.HeldAnnotation, number)
			patched, err := as.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: bed.Account})
			return patched.Size(), err
		}},
	}
}

// No policy bounds how often something is written. The priority levels bound how
// much of it runs at the same time, however many connections there are, and the
// others go on. The rates that are logged are in README.md.
func TestFloodOfAStolenToken(t *testing.T) {
	c := denying.Require(t)
	const name, other = "flooded", "beside-the-flood"
	c.Register(t, name)
	c.Register(t, other)
	applyTo(t, c, name, most()) // each write of the Node writes all of it
	config := bed.AgentOf(t, c, name)
	config.QPS = -1
	stolen := bed.Client(t, config)
	limits := `apiserver_flowcontrol_nominal_limit_seats{priority_level="%s"}`
	levels := map[string]float64{bed.Account: gauge(t, c, fmt.Sprintf(limits, bed.Account)), bed.Account + "-background": gauge(t, c, fmt.Sprintf(limits, bed.Account+"-background"))}
	t.Logf("seats by level: %v", levels)
	for _, f := range floods() {
		running, seats := 0.0, levels[f.level]
		var slowest time.Duration
		rate, size := f.run(t, stolen, name, func() {
			running = max(running, gauge(t, c, fmt.Sprintf(`apiserver_flowcontrol_current_executing_seats{flow_schema=%q,priority_level=%q}`, f.level, f.level)))
			begin := time.Now()
			applyTo(t, c, other, ours())
			applyTo(t, c, other, none(ours()))
			slowest = max(slowest, time.Since(begin))
		})
		t.Logf("%s: %.0f writes/s of %d bytes, %.1f MB/s; at most %.0f of %.0f seats; at most %s for four writes of another agent", f.what, rate, size, rate*float64(size)/1e6, running, seats, slowest)
		if running == 0 || running > seats {
			t.Errorf("%s: %.0f seats are taken at the same time, and there are %.0f", f.what, running, seats)
		}
	}
}

// run makes the writes, and calls meanwhile until they are made. It returns how
// many were made in a second, and the size of what was stored.
func (f flood) run(t *testing.T, as kubernetes.Interface, node string, meanwhile func()) (rate float64, size int64) {
	t.Helper()
	var number, stored atomic.Int64
	var workers sync.WaitGroup
	begin := time.Now()
	for range f.workers {
		workers.Go(func() {
			for i := number.Add(1); i <= int64(f.writes); i = number.Add(1) {
				size, err := f.write(t.Context(), as, node, i)
				if err != nil {
					t.Errorf("%s: %v", f.what, err)
					return
				}
				stored.Store(int64(size))
			}
		})
	}
	ended := make(chan time.Duration, 1)
	go func() {
		workers.Wait()
		ended <- time.Since(begin)
	}()
	for {
		select {
		case took := <-ended:
			return float64(f.writes) / took.Seconds(), stored.Load()
		default:
			meanwhile()
		}
	}
}

// gauge is a series of the API server's metrics.
func gauge(t *testing.T, c *cluster.Cluster, series string) float64 {
	t.Helper()
	metrics, err := c.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(string(metrics))
	if found == nil {
		return 0
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
