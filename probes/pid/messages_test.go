package pid

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
	"github.com/taintlet/taintlet/test/probetest"
)

func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	thresholds := somePIDs
	thresholds.RunningOutWithin, thresholds.RunningOutUsedPercent, thresholds.CriticalUsedPercent = 30*time.Second, 50, 98
	judge := func(used, pidMax uint64) probes.Observation {
		return thresholds.judge(tasks(used, pidMax, 127000), trend.Slope{})
	}
	p, start, running := New(probes.Host{}, thresholds), time.Unix(1e9, 0), probes.Observation{}
	for second := range uint64(22) {
		running = p.follow(tasks(10000+second*500, 32768, 127000), start.Add(time.Duration(second)*time.Second))
	}
	probe := func(h probes.Host) probes.Probe { return New(h, thresholds) }
	unreadable := func(path string) probes.Observation {
		return probetest.SaidOf(t, probe, func(h probes.Host) { probetest.Block(t, h, path) })
	}
	garbled := func(path, text string) probes.Observation {
		return probetest.SaidOf(t, probe, func(h probes.Host) { probetest.Write(t, h, path, text) })
	}
	const pods = "sys/fs/cgroup/kubepods/"
	garbledUse := probetest.SaidOf(t, probe, func(h probes.Host) {
		probetest.Write(t, h, pods+"pids.max", "2000\n")
		probetest.Write(t, h, pods+"pids.current", "many\n")
	})
	probetest.Golden(t, *update,
		judge(820, 32768), judge(26000, 32768), judge(28500, 32768), judge(4300, 5000), running, judge(32400, 32768),
		unreadable("proc/loadavg"), garbled("proc/loadavg", "0.52 0.58 0.59 3/12"),
		unreadable("proc/sys/kernel/pid_max"), garbled("proc/sys/kernel/pid_max", "3e4\n"), unreadable("proc/sys/kernel/threads-max"), garbled("proc/sys/kernel/threads-max", "0\n"),
		unreadable(pods+"pids.max"), garbled(pods+"pids.max", "lots\n"), garbled(pods+"pids.max", "2000\n"), garbledUse,
		garbled("proc/loadavg", "0.52 0.58 0.59\n"), garbled("proc/loadavg", "0.52 0.58 0.59 1234 45678\n"),
		thresholds.judge(sample{host: budget{820, 127000, "kernel.threads-max"}, note: "; kernel.pid_max is not believed: this is not the host's PID namespace"}, trend.Slope{}),
	)
}
