package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/hostprobes"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// watched is a probe of a host that lives through its day. Nothing wakes it but its
// period: the files of a test are none that the kernel can tell of.
type watched struct {
	probes.PeriodOnly
	probes.Probe
	lives *living
}

// living lets one probe at a time see a host.
type living struct {
	mu    sync.Mutex
	host  *Host
	begin time.Time
	// unknown is what a probe could not read: it would set no taint.
	unknown []string
}

func (w watched) Wake() <-chan struct{} { return w.PeriodOnly.Wake() }
func (w watched) Run(context.Context)   {}

func (w watched) Observe(ctx context.Context) probes.Observation {
	w.lives.mu.Lock()
	defer w.lives.mu.Unlock()
	w.lives.host.Show(time.Since(w.lives.begin))
	o := w.Probe.Observe(ctx)
	if o.Level == probes.Unknown {
		w.lives.unknown = append(w.lives.unknown, o.Reason+": "+o.Message)
	}
	return o
}

// well is a probe that sees nothing wrong.
type well struct {
	probes.PeriodOnly
	condition probes.Condition
}

func (w well) Condition() probes.Condition { return w.condition }

func (w well) Observe(context.Context) probes.Observation {
	return probes.Observation{Condition: w.condition, Level: probes.OK, Reason: "Well"}
}

// noted is a Node in memory that notes each taint that is set or removed, and each
// warning about it.
type noted struct {
	*node.Memory
	begin time.Time

	mu      sync.Mutex
	taints  int
	since   time.Duration // when the taints changed last
	tainted time.Duration // how long there was one
	entries []string
}

func (n *noted) Apply(ctx context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	after, err := n.Memory.Apply(ctx, base, desired)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(after.Taints) != n.taints {
		now := time.Since(n.begin)
		if n.taints > 0 {
			n.tainted += now - n.since
		}
		n.taints, n.since = len(after.Taints), now
		n.entries = append(n.entries, fmt.Sprintf("%s: taints %v", time.Since(n.begin), after.Taints))
		for _, c := range after.Conditions {
			n.entries = append(n.entries, fmt.Sprintf("    %s %s %s", c.Type, c.Reason, c.Message))
		}
	}
	return after, err
}

// Event notes a warning about the Node.
func (n *noted) Event(_ *taints.Node, kind, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kind == corev1.EventTypeWarning {
		n.entries = append(n.entries, fmt.Sprintf("%s: %s %s", time.Since(n.begin), reason, message))
	}
}

// live runs an agent with default configuration through a day, and returns what it did.
func live(t *testing.T, day Day) (n *noted, host *Host) {
	t.Helper()
	host = NewHost(t, day)
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		begin := time.Now()
		lives := &living{host: host, begin: begin}
		n = &noted{Memory: node.NewMemory("host", log), begin: begin}
		a := &agent.Agent{
			Config: config.Default(), Client: n, Slots: slots.Rehearsed{Log: log}, Recorder: n, Log: log,
			Instance: "test", Boot: decide.Boot{ID: "boot", At: begin}, Now: time.Now,
			NewProbe: func(c config.Condition) probes.Probe {
				switch c.Name {
				case probes.MemoryPressure, probes.PIDPressure:
					return watched{Probe: hostprobes.NewProbe(host.Host())(c), lives: lives}
				}
				return well{condition: c.Name}
			},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if err := a.Run(ctx, nil); err != nil {
			t.Error(err)
		}
		if len(lives.unknown) > 0 {
			t.Errorf("%d samples were Unknown, such as %s", len(lives.unknown), lives.unknown[0])
		}
	})
	return n, host
}

// A day of ordinary life sets no taint, although it comes near to each threshold.
func TestAnOrdinaryDaySetsNoTaint(t *testing.T) {
	t.Parallel()
	n, host := live(t, Busy(1))
	for _, entry := range n.entries {
		t.Error(entry)
	}
	least := 100 * host.LeastAvailable / Total
	t.Logf("tainted for %s; at least %.1f %% of the memory was available, and at most %.0f tasks ran", n.tainted, least, host.MostTasks)
	if least < 8 || least > 12 || host.MostTasks < 20_000 || host.MostTasks > 25_000 {
		t.Error("the day does not come as near to the thresholds as it should, or nearer")
	}
}
