package integration

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// longOutages also plays outages of 100 and 300 s.
const longOutages = "TAINTLET_LONG_OUTAGES"

// latestAfterOutage is far above what is measured (see the log), for a machine that stalls, and
// below the minute and a half that it took when the writer slept until its pause was over.
const latestAfterOutage = 45 * time.Second

// A taint that became due while the API server was away comes as soon as it is
// back, whether the server refused connections or its host had vanished.
func TestTaintComesSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	lengths := []time.Duration{15 * time.Second, 45 * time.Second}
	if os.Getenv(longOutages) != "" {
		lengths = append(lengths, 60*time.Second, 100*time.Second, 300*time.Second)
	}
	for what, leave := range map[string]func(*cluster.Gate){"refused": (*cluster.Gate).Refuse, "silent": (*cluster.Gate).Hush} {
		for _, length := range lengths {
			t.Run(what+" for "+length.String(), func(t *testing.T) {
				t.Parallel()
				node, host := c.Register(t, "outage-"+what+"-"+length.String()), fixtures.NewHost(t)
				g := cluster.NewGate(t, strings.TrimPrefix(c.URL(), "https://"))
				g.Open()
				as := identity(t, c, node.Name)
				as.Host = "https://" + g.Address
				a := startAgentAs(t, as, node.Name, host, quick)
				waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
				begin := time.Now()
				leave(g)
				host.Memory(2)
				a.WaitMetric(`taintlet_condition_level{condition="MemoryPressure",level="Degraded"} 1`)
				select { // the outage goes on
				case <-time.After(length - time.Since(begin)):
				case <-t.Context().Done():
					t.Fatal(context.Cause(t.Context()))
				}
				back := time.Now()
				g.Open()
				waitNode(t, c, node.Name, cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
				late := time.Since(back)
				t.Logf("%s for %s: the taint came %s after the API server was back", what, length, late.Round(10*time.Millisecond))
				if late > latestAfterOutage {
					t.Errorf("the taint came %s after the API server was back", late)
				}
			})
		}
	}
}
