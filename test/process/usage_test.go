package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// burnerEnv makes the test binary a process that uses that much CPU in a thread
// that ends.
const burnerEnv = "TAINTLET_TEST_BURN"

func TestMain(m *testing.M) {
	if text := os.Getenv(burnerEnv); text != "" {
		burnAndWait(text)
		return
	}
	os.Exit(m.Run())
}

func burnAndWait(text string) {
	length, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	// The first thread of a process does not end before it: while main holds it, the
	// goroutine gets another one.
	runtime.LockOSThread()
	ended := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		for threadTime() < length {
			continue
		}
		ended <- unix.Gettid()
	}()
	tid := <-ended
	for unix.Tgkill(os.Getpid(), tid, 0) == nil {
		time.Sleep(time.Millisecond) // no event tells of a thread's end
	}
	fmt.Println("burnt")
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is all that counts
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// The CPU time of a process includes that of threads that have ended, and is finer
// than the kernel's ticks.
func TestUsageIncludesEndedThreads(t *testing.T) {
	const burnt = 300 * time.Millisecond
	command := exec.Command(os.Args[0]) //nolint:gosec // this binary
	command.Env = append(os.Environ(), burnerEnv+"="+burnt.String())
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	u, err := UsageOf(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	descriptors, err := os.ReadDir("/proc/" + strconv.Itoa(command.Process.Pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	total := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	if u.CPU < burnt || u.CPU > total+20*time.Millisecond || u.CPU%(10*time.Millisecond) == 0 {
		t.Errorf("%s of CPU, want at least %s and about %s", u.CPU, burnt, total)
	}
	if u.RSS < u.Anonymous || u.Anonymous == 0 || u.Threads < 2 || u.Descriptors != len(descriptors) {
		t.Errorf("%+v, want %d descriptors", u, len(descriptors))
	}
	if _, err := UsageOf(command.Process.Pid); err == nil {
		t.Error("a process that has ended has a usage")
	}
}
