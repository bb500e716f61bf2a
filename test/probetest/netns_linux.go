package probetest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
)

const ownNetworkEnv = "TAINTLET_TEST_OWN_NETWORK"

// InOwnNetwork runs the test once more in a process with a network namespace of
// its own, in which not even lo is up, and returns false. In that process it
// returns the host to probe and true.
func InOwnNetwork(t *testing.T, tools ...string) (probes.Host, bool) {
	t.Helper()
	if outside := os.Getenv(ownNetworkEnv); outside != "" {
		if namespace(t) == outside {
			t.Fatal("this is the machine's own network, which no test may change")
		}
		return HostHere(t), true
	}
	if os.Geteuid() != 0 {
		t.Skip("a network namespace of its own needs root")
	}
	for _, tool := range append(tools, "ip") {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this host lacks a tool: %v", err)
		}
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=100s")
	child.Env = append(os.Environ(), ownNetworkEnv+"="+namespace(t))
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	output, err := child.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("a network namespace of its own is not allowed here: %v", err)
	}
	if err != nil {
		t.Fatalf("in its own network namespace: %v\n%s", err, output)
	}
	if bytes.Contains(output, []byte("--- SKIP")) || testing.Verbose() {
		t.Logf("in its own network namespace:\n%s", output)
	}
	return probes.Host{}, false
}

// namespace names the network namespace of this process.
func namespace(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// HostHere is this process's host. A sysfs shows the interfaces of the namespace
// that it was mounted in.
func HostHere(t testing.TB) probes.Host {
	t.Helper()
	sys := t.TempDir()
	if err := unix.Mount("sysfs", sys, "sysfs", unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(sys, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return probes.Host{Root: "/", Proc: "/proc", Sys: sys}
}

// Sh runs commands, one a line.
func Sh(t testing.TB, commands string) {
	t.Helper()
	for line := range strings.Lines(commands) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if output, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.TrimSpace(line), err, output)
		}
	}
}
