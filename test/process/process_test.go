package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary a process that starts another one.
const helperEnv = "TAINTLET_TEST_PROCESS_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(startAndWait())
	}
	if text := os.Getenv(burnerEnv); text != "" {
		burnAndWait(text)
		return
	}
	os.Exit(m.Run())
}

// startAndWait starts another process, says its ID, and waits to be killed.
func startAndWait() int {
	p, err := Start("sleep", exec.Command("sleep", "infinity"), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.PID())
	<-context.Background().Done() // until it is killed
	return 0
}

// patience is far above what a busy machine needs.
const patience = time.Minute

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start runs a shell script.
func start(t *testing.T, script, log string) (*Process, *Lines) {
	t.Helper()
	output := &Lines{}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", script)
	command.Stdout = output
	p, err := Start("script", command, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() }) //nolint:errcheck // it may have ended
	return p, output
}

func waitLine(t *testing.T, p *Process, output *Lines, text string) {
	t.Helper()
	if err := p.WaitLines(soon(t), output, func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), text) }); err != nil {
		t.Fatal(err)
	}
}

// The thread that asks for a process ends, as the runtime ends idle ones. A
// process that it had forked itself would end with it.
func TestAProcessOutlivesTheThreadThatAskedForIt(t *testing.T) {
	type asked struct {
		process *Process
		thread  int
		err     error
	}
	result := make(chan asked)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		thread := unix.Gettid()
		p, err := Start("sleep", exec.Command("sleep", "infinity"), "")
		result <- asked{p, thread, err}
	}()
	a := <-result
	if a.err != nil {
		t.Fatal(a.err)
	}
	if a.thread == unix.Getpid() {
		t.Skip("the goroutine had the first thread, which does not end")
	}
	threadEnds(t, a.thread)
	if !Running(a.process.PID()) {
		t.Errorf("the process ended with the thread: %v", a.process.Err())
	}
	if err := a.process.Kill(); err != nil {
		t.Error(err)
	}
}

func threadEnds(t *testing.T, thread int) {
	t.Helper()
	ctx := soon(t)
	for {
		if _, err := os.Stat(filepath.Join("/proc/self/task", strconv.Itoa(thread))); errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("thread %d does not end", thread)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAProcessEndsWithTheOneThatStartedIt(t *testing.T) {
	output := &Lines{}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), helperEnv+"=1")
	command.Stdout, command.Stderr = output, os.Stderr
	starter, err := Start("helper", command, "")
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	err = starter.WaitLines(soon(t), output, func(lines []string) bool {
		if len(lines) > 0 {
			pid, err = strconv.Atoi(lines[0])
		}
		return len(lines) > 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if !Running(pid) {
		t.Fatalf("process %d does not run, or this test proves nothing", pid)
	}
	if err := starter.Kill(); err != nil {
		t.Error(err)
	}
	if err := WaitGone(soon(t), pid); err != nil {
		t.Errorf("process %d outlives the one that started it: %v", pid, err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestAnUnexpectedEndIsToldWithTheProcesssOwnLog(t *testing.T) {
	for code, want := range map[int]string{7: "exit status 7", 0: "exit status 0"} {
		log := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(log, []byte("of the one before\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, _ := start(t, fmt.Sprintf("echo to stdout; echo to stderr >&2; exit %d", code), log)
		<-p.Ended()
		for what, err := range map[string]error{
			"Err": p.Err(), "Kill": p.Kill(), "Stop": p.Stop(patience),
			"WaitUntil": p.WaitUntil(t.Context(), func(context.Context) error { return errors.New("no answer") }),
		} {
			if err == nil || !strings.Contains(err.Error(), "script ended by itself: "+want) || !strings.HasSuffix(err.Error(), "---\nto stdout\nto stderr") {
				t.Errorf("exit %d, %s: %v", code, what, err)
			}
		}
		if got, err := os.ReadFile(log); err != nil || string(got) != "of the one before\nto stdout\nto stderr\n" {
			t.Errorf("the log has %q, %v", got, err)
		}
		if got := p.Tail(1); !strings.HasSuffix(got, "---\nto stderr") {
			t.Errorf("the last line of the log: %s", got)
		}
	}
}

func TestStopAsksFirst(t *testing.T) {
	p, output := start(t, "trap 'echo ending; exit 3' TERM; echo ready; while :; do sleep 0.01; done", "")
	waitLine(t, p, output, "ready")
	if err := p.Stop(patience); err != nil {
		t.Error(err)
	}
	if p.ExitCode() != 3 || !strings.Contains(output.String(), "ending") {
		t.Errorf("exit code %d, output %q; want that the process ended in its own way", p.ExitCode(), output)
	}
}

func TestStopInsists(t *testing.T) {
	p, output := start(t, "trap '' TERM; echo ready; while :; do sleep 0.01; done", "")
	waitLine(t, p, output, "ready")
	if err := p.Stop(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not end within 50ms of SIGTERM") {
		t.Errorf("Stop: %v", err)
	}
	if Running(p.PID()) {
		t.Error("the process still runs")
	}
}
