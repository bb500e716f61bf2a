package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAThreadIsAlwaysTheSame(t *testing.T) {
	var entered int
	thread, err := NewThread(func() error {
		entered = unix.Gettid()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		err := thread.Do(func() error {
			if now := unix.Gettid(); now != entered {
				t.Errorf("thread %d, and before it was %d", now, entered)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	thread.Close()
	threadEnds(t, entered)
}

// The first thread of a process never ends, and what it started would not
// either. With one processor, a goroutine runs on the thread of the one that
// waits for it.
func TestNoThreadIsTheFirst(t *testing.T) {
	var out strings.Builder
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), helperEnv+"="+firstThread, "GOMAXPROCS=1")
	command.Stdout, command.Stderr = &out, &out
	if err := Run(command); err != nil || out.String() != "main: true, thread: false\n" {
		t.Errorf("on the first thread: %s(%v); want main alone, or this test proves nothing", &out, err)
	}
}

// onFirstThread says whether this goroutine and a Thread are on the first thread.
func onFirstThread() int {
	isFirst := func() bool { return unix.Gettid() == unix.Getpid() }
	main, thread := isFirst(), false
	t, err := NewThread(func() error {
		thread = isFirst()
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer t.Close()
	fmt.Printf("main: %t, thread: %t\n", main, thread)
	return 0
}

func TestErrorsOfAThread(t *testing.T) {
	want := errors.New("no")
	if _, err := NewThread(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("NewThread: %v", err)
	}
	thread, err := NewThread(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	if err := thread.Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("Do: %v", err)
	}
}

func TestCloseEndsWhatTheThreadStarted(t *testing.T) {
	thread, err := NewThread(nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := thread.Start("sleep", exec.Command("sleep", "infinity"), "")
	if err != nil {
		t.Fatal(err)
	}
	thread.Close()
	select {
	case <-p.Ended():
	case <-soon(t).Done():
		t.Error("the process outlives its thread")
		p.Kill() //nolint:errcheck // the test has failed
	}
}

// Who a command is to be stays, beside what Start asks for.
func TestACommandOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start a program as somebody else")
	}
	output := &Lines{}
	command := exec.Command("id", "-u")
	command.Stdout = output
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	p, err := Start("id", command, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || output.String() != "65532\n" {
		t.Errorf("%v, it is user %q", err, output)
	}
}
