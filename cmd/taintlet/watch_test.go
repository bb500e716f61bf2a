package main

import (
	"bufio"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
)

// A watch samples anew each time, with the time above, and ends well.
func TestOnceWatches(t *testing.T) {
	t.Parallel()
	host := fixtures.NewHost(t)
	command := exec.CommandContext(t.Context(), program.Path(t), append([]string{"once", "--watch", "--node-name=host-1"}, host.Flags()...)...) //nolint:gosec // our own binary
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for _, wanted := range []string{"host-1  ", "MemoryPressure "} {
		for lines.Scan() && !strings.HasPrefix(lines.Text(), wanted) {
		}
	}
	host.Memory(2)
	for lines.Scan() && !strings.Contains(lines.Text(), "node.kubernetes.io/memory-pressure:NoSchedule") {
	}
	if !strings.HasPrefix(lines.Text(), "MemoryPressure ") {
		t.Errorf("the last line is %q", lines.Text())
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := command.Wait(); err != nil {
		t.Errorf("ended by Ctrl-C: %v", err)
	}
}
