package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/test/fixtures"
)

func TestBarHasItsMarkAtTheThreshold(t *testing.T) {
	for severity, want := range map[int]string{
		-1: "············│············", 0: "············│············", 25: "██████······│············",
		50: "████████████│············", 75: "████████████│██████······", 100: "████████████│████████████", 101: "████████████│████████████",
	} {
		if got := bar(severity); got != want {
			t.Errorf("%d: %s, want %s", severity, got, want)
		}
	}
}

// watch draws over the picture before, in colour, on a terminal; elsewhere, and
// with NO_COLOR, without. It samples anew for each picture and ends well.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		env      string
		has, not string
	}{
		"a terminal":          {true, "TERM=xterm", "\x1b[32mOK", ""},
		"NO_COLOR":            {true, "NO_COLOR=1", "\x1b[H", "\x1b[32m"},
		"a terminal without":  {true, "TERM=dumb", "\x1b[H", "\x1b[32m"},
		"not even a terminal": {false, "TERM=xterm", "available", "\x1b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := fixtures.NewHost(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			command := exec.CommandContext(ctx, program.Path(t), append([]string{"once", "--watch", "--node-name=host-1"}, host.Flags()...)...) //nolint:gosec // our own binary
			command.Env = append(os.Environ(), "NO_COLOR=", c.env)
			output := attach(t, command, c.terminal)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			seen := waitText(t, output, "MemoryPressure")
			host.Memory(2)
			seen += waitText(t, output, "would set node.kubernetes.io/memory-pressure:NoSchedule (kept)")
			if err := command.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := command.Wait(); err != nil {
				t.Errorf("ended by Ctrl-C: %v", err)
			}
			if !strings.Contains(seen, c.has) || c.not != "" && strings.Contains(seen, c.not) || !strings.Contains(seen, "host-1") {
				t.Errorf("%q in %q, and not %q", c.has, seen, c.not)
			}
			if c.terminal && (strings.Count(seen, "\x1b[2J") != 1 || strings.Count(seen, "\x1b[H") < 2) {
				t.Errorf("not drawn over: %q", seen)
			}
		})
	}
}

// attach gives the command a terminal or a pipe, and returns what reads it.
func attach(t *testing.T, command *exec.Cmd, terminal bool) *bufio.Reader {
	t.Helper()
	if !terminal {
		pipe, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(pipe)
	}
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(control.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200}); err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close(); screen.Close() }) //nolint:errcheck // nothing is left to be told
	command.Stdout = screen
	return bufio.NewReader(control)
}

// waitText reads until the text has come, and returns all that was read.
func waitText(t *testing.T, from *bufio.Reader, text string) string {
	t.Helper()
	var seen strings.Builder
	for !strings.Contains(seen.String(), text) {
		line, err := from.ReadString('\n')
		seen.WriteString(line)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		} else if err != nil {
			t.Fatalf("ended without %q: %q", text, seen.String())
		}
	}
	return seen.String()
}
