package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// Memory reads a line of /proc/PID/status, in KiB.
func Memory(pid int, line string) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	match := regexp.MustCompile(line + `:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("/proc/%d/status has no %s", pid, line)
	}
	return strconv.Atoi(string(match[1]))
}

// RunMeasured runs a command to its end and returns the most memory that it had, in
// KiB. What the kernel tells of that afterwards (getrusage(2)) is at least the memory
// of the caller, of which the command was a copy for a moment. The command is killed
// when the context ends.
func RunMeasured(ctx context.Context, command *exec.Cmd) (most int, err error) {
	if err := command.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return most, err
		case <-ctx.Done():
			command.Process.Kill() //nolint:errcheck // it may have ended
			return most, <-ended
		case <-tick.C:
			if mark, err := Memory(command.Process.Pid, "VmHWM"); err == nil && isProgram(command) {
				most = max(most, mark)
			}
		}
	}
}

// isProgram reports whether the process is the program already.
func isProgram(command *exec.Cmd) bool {
	own, errOwn := os.Readlink("/proc/self/exe")
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", command.Process.Pid))
	return errOwn == nil && err == nil && its != own
}
