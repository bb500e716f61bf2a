package pid

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	thresholds := somePIDs
	thresholds.CriticalUsedPercent = 98
	judge := func(used, pidMax uint64) probes.Observation {
		return thresholds.judge(tasks(used, pidMax, 127000))
	}
	probe := func(h probes.Host) probes.Probe { return New(h, thresholds) }
	unreadable := func(path string) probes.Observation {
		return probetest.SaidOf(t, probe, func(h probes.Host) { probetest.Block(t, h, path) })
	}
	garbled := func(path, text string) probes.Observation {
		return probetest.SaidOf(t, probe, func(h probes.Host) { probetest.Write(t, h, path, text) })
	}
	probetest.Golden(t, *update,
		judge(820, 32768), judge(26000, 32768), judge(28500, 32768), judge(4300, 5000), judge(32400, 32768),
		unreadable("proc/loadavg"), garbled("proc/loadavg", "0.52 0.58 0.59 3/12"),
		unreadable("proc/sys/kernel/pid_max"), garbled("proc/sys/kernel/pid_max", "3e4\n"), unreadable("proc/sys/kernel/threads-max"), garbled("proc/sys/kernel/threads-max", "0\n"),
		garbled("proc/loadavg", "0.52 0.58 0.59\n"), garbled("proc/loadavg", "0.52 0.58 0.59 1234 45678\n"),
		thresholds.judge(sample{used: 820, limit: 127000, setting: "kernel.threads-max", note: "; kernel.pid_max is not believed: this is not the host's PID namespace"}),
	)
}
