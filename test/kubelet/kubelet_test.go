package kubelet_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
)

// TestNodeIsReadyAndLeavesNothing needs root and a containerd: it runs where
// TAINTLET_REQUIRE lists kubelet beside controlplane.
func TestNodeIsReadyAndLeavesNothing(t *testing.T) {
	if !cluster.Required("kubelet") {
		t.Skip("needs root, containerd and a control plane: set TAINTLET_REQUIRE=controlplane,kubelet")
	}
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
	inside := exec.Command("sh", "-c", "test -S /run/containerd/containerd.sock && test -d /var/lib/kubelet/pods")
	if err := k.Run(inside); err != nil {
		t.Error(err)
	} else if err := inside.Wait(); err != nil {
		t.Errorf("a command that k.Run started does not see the kubelet's files: %v", err)
	}
	if during := mounts(t); during != before {
		t.Errorf("the host's mounts have changed:\n%s", during)
	}
	if err := k.Stop(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(pods); err == nil && othersPods != nil { // nil: another kubelet's were there
		t.Errorf("cgroups are left: %v", entries)
	}
}

func mounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
