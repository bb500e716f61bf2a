package kubelet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
	"github.com/taintlet/taintlet/test/process"
)

// requireKubelet skips a test that needs root and a containerd, unless
// TAINTLET_REQUIRE lists kubelet beside controlplane.
func requireKubelet(t *testing.T) {
	t.Helper()
	if !cluster.Required("kubelet") {
		t.Skip("needs root, containerd and a control plane: set TAINTLET_REQUIRE=controlplane,kubelet")
	}
}

func TestNodeIsReadyAndLeavesNothing(t *testing.T) {
	requireKubelet(t)
	c := cluster.New(t, cluster.Options{})
	before := mounts(t)
	const pods = "/sys/fs/cgroup/memory/kubepods"
	_, othersPods := os.Stat(pods)
	k, err := kubelet.Start(t.Context(), c, kubelet.Options{NodeName: "node-a", EvictionPressureTransitionPeriod: time.Second, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	memory, err := k.Memory(t.Context())
	if err != nil {
		t.Error(err)
	}
	t.Logf("memory: %+v", memory)
	inside(t, k, "sh", "-c", "test -S /run/containerd/containerd.sock && test -d /var/lib/kubelet/pods")
	if during := mounts(t); during != before {
		t.Errorf("the host's mounts have changed:\n%s", during)
	}
	container := startContainer(t, k)
	if err := k.Kill(); err != nil {
		t.Error(err)
	}
	if err := k.Stop(); err != nil {
		t.Error(err)
	}
	if process.Running(container) {
		t.Errorf("process %d of a container still runs", container)
	}
	if entries, err := os.ReadDir(pods); err == nil && othersPods != nil { // nil: another kubelet's were there
		t.Errorf("cgroups are left: %v", entries)
	}
}

// startContainer starts a container in a pod's place, without an image: its
// files are the host's. It returns the process ID of what runs in it.
func startContainer(t *testing.T, k *kubelet.Kubelet) int {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "usr"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	inside(t, k, "ctr", "run", "--detach", "--cgroup=/kubepods/left", "--rootfs", "--mount=type=bind,src=/usr,dst=/usr,options=rbind:ro",
		root, "left", "/usr/bin/sleep", "infinity")
	for line := range strings.Lines(inside(t, k, "ctr", "tasks", "list")) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "left" && fields[2] == "RUNNING" {
			pid, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the container does not run")
	return 0
}

// inside runs a program where the kubelet lives, and returns its output.
func inside(t *testing.T, k *kubelet.Kubelet, program string, args ...string) string {
	t.Helper()
	var out, complaints strings.Builder
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = &out, &complaints
	running, err := k.StartInside(program, command, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Wait(); err != nil {
		t.Fatalf("%s, started by k.StartInside: %v\n%s", program, err, complaints.String())
	}
	return out.String()
}

func mounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
