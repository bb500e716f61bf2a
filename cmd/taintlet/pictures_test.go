package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/fixtures"
)

// watched is what once --watch wrote to a terminal, from its last picture on.
const watched = "testdata/watch.ansi"

// What once --watch writes to a terminal is what the picture of the documentation was drawn
// from, but for the time and for the size and the name of this machine's disk. -update records what
// differs in more.
func TestRecordedWatch(t *testing.T) {
	got := lastFrame(t)
	want, err := os.ReadFile(watched)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if timeless(got) == timeless(string(want)) {
		return
	}
	if !*update {
		t.Errorf("%s has\n%q\nbut it is\n%q; make terminal-pictures records it", watched, want, got)
	} else if err := os.WriteFile(watched, []byte(got), 0o600); err != nil {
		t.Fatal(err)
	}
}

func timeless(text string) string {
	return regexp.MustCompile(`\d\d:\d\d:\d\d|[\d.]+ [KMG]iB of [\d.]+ [KMG]iB \([\d.]+ %\) on .*?, threshold`).ReplaceAllString(text, "…")
}

// lastFrame is the picture that once --watch draws of a host without memory and PIDs.
func lastFrame(t *testing.T) string {
	t.Helper()
	host := fixtures.NewHost(t)
	host.Memory(2)
	host.Tasks(32400)
	file := filepath.Join(t.TempDir(), "config.yaml")
	// What else is well of the network differs from machine to machine.
	const config = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nnetwork: {disabledClasses: [self, api, local, pods, dns, peers, conntrack]}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program.Path(t), append([]string{"once", "--watch", "--node-name=worker-3", "--config=" + file}, host.Flags()...)...) //nolint:gosec // our own binary
	command.Env = append(os.Environ(), "NO_COLOR=", "TERM=xterm")
	output := attach(t, command, true)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waitText(t, output, "NetworkUnavailable")
	seen := waitText(t, output, "NetworkUnavailable") + waitText(t, output, "\x1b[H")
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("ended by Ctrl-C: %v", err)
	}
	frames := strings.Split(seen, "\x1b[H")
	return "\x1b[H" + frames[1]
}

// The picture of the documentation shows what was recorded. -update draws it.
func TestTerminalPictures(t *testing.T) {
	frame, err := os.ReadFile(watched)
	if err != nil {
		t.Fatal(err)
	}
	fixtures.CheckPicture(t, "../../docs/images/watch.svg", "taintlet once --watch", string(frame), *update)
}
