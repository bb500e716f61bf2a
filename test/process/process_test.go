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

// helperEnv makes the test binary a process that does one of two things.
const (
	helperEnv   = "TAINTLET_TEST_PROCESS_HELPER"
	startSleep  = "start-sleep"
	firstThread = "first-thread"
)

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case startSleep:
		os.Exit(startAndWait())
	case firstThread:
		os.Exit(onFirstThread())
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
	command.Env = append(os.Environ(), helperEnv+"="+startSleep)
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

func TestAProcessHasAGroupOfItsOwn(t *testing.T) {
	p, _ := start(t, "exec sleep infinity", "")
	if group, err := syscall.Getpgid(p.PID()); err != nil || group != p.PID() {
		t.Errorf("process %d is in group %d (%v): Ctrl-C in a terminal reaches it", p.PID(), group, err)
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

func TestAnEndThatWasAskedForIsNoError(t *testing.T) {
	for what, end := range map[string]func(*Process) error{
		"Kill": (*Process).Kill,
		"Stop": func(p *Process) error { return p.Stop(patience) },
	} {
		p, _ := start(t, "exec sleep infinity", "")
		if err := p.Err(); err != nil {
			t.Errorf("%s: while it runs: %v", what, err)
		}
		for range 2 { // the second time does nothing
			if err := end(p); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := p.Err(); err != nil || Running(p.PID()) {
			t.Errorf("%s: afterwards: %v; still running: %t", what, err, Running(p.PID()))
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

func TestAChildThatHoldsTheOutputHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p, output := start(t, "sleep 1000 & echo child $!; exec sleep infinity", "")
	waitLine(t, p, output, "child ")
	child, err := strconv.Atoi(strings.Fields(output.String())[1])
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(child, syscall.SIGKILL) //nolint:errcheck // it is there: see below
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if !Running(child) {
		t.Error("the child ended with its parent: nothing was tested")
	}
}

func TestWaitReturnsTheResult(t *testing.T) {
	p, output := start(t, "echo done; exit 7", "")
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || p.ExitCode() != 7 || output.String() != "done\n" {
		t.Errorf("Wait: %v, exit code %d, output %q", err, p.ExitCode(), output)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill after Wait: %v", err)
	}
}

func TestWaitUntilEndsWithTheContext(t *testing.T) {
	p, _ := start(t, "exec sleep infinity", "")
	asked := 0
	if err := p.WaitUntil(soon(t), func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.WaitUntil(ended, func(context.Context) error { return errors.New("never") })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "last answer: never") {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	if _, err := Start("nothing", exec.Command("/no/such/program"), ""); err == nil || !strings.Contains(err.Error(), "start nothing: ") {
		t.Errorf("Start: %v", err)
	}
	if _, err := Start("script", exec.Command("true"), "/no/such/folder/log"); err == nil || !strings.Contains(err.Error(), "open the log of script: ") {
		t.Errorf("Start without a log: %v", err)
	}
}

func TestAZombieDoesNotRun(t *testing.T) {
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer command.Wait() //nolint:errcheck // until then it is a zombie
	if err := WaitGone(soon(t), command.Process.Pid); err != nil {
		t.Error(err)
	}
	if !Running(os.Getpid()) {
		t.Error("this process does not run")
	}
}
