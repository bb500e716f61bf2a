package network

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

// What the checks may cost: processor time as a share of what the agent takes without them, bytes a
// second, and KiB. Each agent has 7 peers here, and 12 in a large fleet: it asks 4 of them in a round,
// and is asked by 4 on average, whatever the size.
const (
	maxShare  = 0.5
	maxBytes  = 5000
	maxMemory = 1024
)

// costTime is how long the cost of a steady network is measured.
const costTime = time.Minute

// cost is what an agent takes on average.
type cost struct {
	cpu    float64 // percent of a core
	bytes  float64 // a second, in and out
	memory float64 // KiB
}

// TestCost measures what the checks of the network cost: agents with all classes,
// beside agents with none.
func TestCost(t *testing.T) {
	onlyLong(t)
	s := require(t)
	without := s.costOf(t, "without", "network: {disabledClasses: [route, self, api, local, pods, dns, peers, conntrack]}\n")
	with := s.costOf(t, "with", "")
	more := cost{with.cpu - without.cpu, with.bytes - without.bytes, with.memory - without.memory}
	t.Logf("without: %+v; with: %+v; the difference: %+v", without, with, more)
	if more.cpu > maxShare*without.cpu || more.bytes > maxBytes || more.memory > maxMemory {
		t.Errorf("the network costs %.3f %% of a core, %.0f bytes a second and %.0f KiB", more.cpu, more.bytes, more.memory)
	}
}

// onlyLong skips a test of the long form.
func onlyLong(t *testing.T) {
	t.Helper()
	if os.Getenv(longEnv) == "" {
		t.Skip("takes minutes: run `make network`")
	}
}

func (s scene) costOf(t *testing.T, name, config string) (mean cost) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		agents := s.Start(t, hosts, config)
		fleet.WaitSamples(t, agents, 6) // the start is no steady state
		before := make([]cost, len(agents))
		for i, a := range agents {
			before[i] = spent(t, a)
		}
		began := time.Now()
		time.Sleep(costTime)
		took, count := time.Since(began).Seconds(), float64(len(agents))
		for i, a := range agents {
			now := spent(t, a)
			mean.cpu += 100 * (now.cpu - before[i].cpu) / took / count
			mean.bytes += (now.bytes - before[i].bytes) / took / count
			mean.memory += now.memory / count
		}
	})
	return mean
}

// spent is what the agent has taken so far: seconds of processor time, bytes, and
// the memory that it has that is no file.
func spent(t *testing.T, a *fleet.Agent) cost {
	t.Helper()
	c := cost{memory: float64(a.Memory(t, "RssAnon"))}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", a.Process.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task) //nolint:gosec // the kernel's
		if err != nil {
			continue // the thread has ended
		}
		nanoseconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		c.cpu += nanoseconds / 1e9
	}
	text, err := a.Output("", "cat", "/sys/class/net/eth0/statistics/rx_bytes", "/sys/class/net/eth0/statistics/tx_bytes")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(text) {
		bytes, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		c.bytes += bytes
	}
	return c
}
