package integration

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// threadsEnv makes the test binary a process with that many threads.
const threadsEnv = "TAINTLET_TEST_THREADS"

// holdThreads starts threads, says so, and ends when its standard input does.
func holdThreads(count string) int {
	n, err := strconv.Atoi(count)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	started := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			started <- struct{}{}
			select {}
		}()
	}
	for range n {
		<-started
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is all that counts
	return 0
}

// Real threads, counted by the real kernel, against a limit that the fake
// procfs has lowered.
func TestRealThreadsAgainstALoweredLimit(t *testing.T) {
	t.Parallel()
	c, key := pressured(t, corev1.TaintNodePIDPressure)
	const threads = 2000
	node, host := c.Register(t, "threads"), fixtures.NewHost(t)
	host.Remove("proc/loadavg")
	if err := os.Symlink("/proc/loadavg", filepath.Join(host.Dir, "proc", "loadavg")); err != nil {
		t.Fatal(err)
	}
	host.Write("proc/sys/kernel/pid_max", strconv.Itoa(tasksNow(t)+threads+300)+"\n")
	startAgent(t, c, node.Name, host, strings.Replace(quick, "pid: {", "pid: {usedPercent: 85, ", 1))
	waitNode(t, c, node.Name, cluster.HasCondition("HostPIDPressure", corev1.ConditionFalse))

	command := exec.Command(os.Args[0]) //nolint:gosec // this binary
	command.Env = append(os.Environ(), threadsEnv+"="+strconv.Itoa(threads))
	output := &process.Lines{}
	command.Stdout, command.Stderr = output, os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Start("child", command, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Kill() }) //nolint:errcheck // it has ended, unless the test failed
	if err := child.WaitLines(t.Context(), output, func(lines []string) bool { return slices.Contains(lines, "ready") }); err != nil {
		t.Fatal(err)
	}
	waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(key, corev1.TaintEffectNoSchedule)))
}

// tasksNow is the kernel's count of tasks.
func tasksNow(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	_, total, _ := strings.Cut(strings.Fields(string(text))[3], "/")
	return atoi(t, total)
}
