package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/process"
)

// All threads of the agent have relaxed timers, and the process keeps its number and name.
func TestTimersAreRelaxed(t *testing.T) {
	t.Parallel()
	var log process.Lines
	command := process.Command(program.Path(t), "--dry-run=client", "--listen=", "--node-name=host")
	command.Stderr = &log
	agent, err := process.Start("the agent", command, "")
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Kill() //nolint:errcheck // it has nothing to give back
	err = agent.WaitLines(t.Context(), &log, func(lines []string) bool {
		return len(lines) > 0 && strings.Contains(lines[len(lines)-1], "probe runs")
	})
	if err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(agent.PID()) + "/task/*")
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	for _, thread := range threads {
		name, err := os.ReadFile(filepath.Join(thread, "comm"))
		if err != nil || string(name) != "taintlet\n" {
			t.Errorf("a thread is called %q, %v", name, err)
		}
		slack, err := os.ReadFile(filepath.Join("/proc", filepath.Base(thread), "timerslack_ns"))
		if errors.Is(err, fs.ErrPermission) {
			t.Skip("only root may read the slack of another process (CAP_SYS_NICE)")
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(slack)); got != strconv.FormatInt(timerSlack.Nanoseconds(), 10) {
			t.Errorf("a thread has a slack of %s ns, want %s", got, timerSlack)
		}
	}
}
