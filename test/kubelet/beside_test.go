package kubelet_test

import (
	"errors"
	"github.com/taintlet/taintlet/test/bed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/kubelet"
	"github.com/taintlet/taintlet/test/process"
)

// One file system puts taintlet and the kubelet under pressure, each at its own
// time: here taintlet minds its inodes, and the kubelet its space.
const (
	kubeletThreshold = "50%" // of the space available
	spacePercent     = 60    // taken, of all
	inodesPercent    = 15    // taken, of all

	// No other condition has a rule: what else happens to this host does not
	// matter here. The wait before a clear does not grow.
	agentConfig = `apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
disk:
  paths: [/var/lib/kubelet]
  availablePercent: 1
  inodesPercent: 90
  period: 500ms
  debounce: {clearFactor: 1.05, clearAfter: 1s, maxClearAfter: 1s}
writeBudget: {interval: 1s}
rules:
- {condition: DiskPressure, level: Degraded, taint: {key: node.kubernetes.io/disk-pressure, effect: NoSchedule}}
`
)

// disk is the kubelet's file system.
type disk struct {
	t               *testing.T
	kubelet         *kubelet.Kubelet
	inodes, ballast string
}

func newDisk(t *testing.T, k *kubelet.Kubelet) *disk {
	d := &disk{t: t, kubelet: k, inodes: k.HostPath("/var/lib/inodes"), ballast: k.HostPath("/var/lib/ballast")}
	t.Cleanup(func() {
		d.giveInodes()
		d.giveSpace()
	})
	return d
}

func (d *disk) usage() (u unix.Statfs_t) {
	d.t.Helper()
	if err := unix.Statfs(filepath.Dir(d.inodes), &u); err != nil {
		d.t.Fatal(err)
	}
	return u
}

// takeInodes puts taintlet under pressure, giveInodes ends it.
func (d *disk) takeInodes() {
	d.t.Helper()
	if err := os.Mkdir(d.inodes, 0o755); err != nil {
		d.t.Fatal(err)
	}
	for i := range d.usage().Files * inodesPercent / 100 {
		if err := unix.Mknod(filepath.Join(d.inodes, strconv.FormatUint(i, 10)), unix.S_IFREG, 0); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *disk) giveInodes() {
	d.t.Helper()
	if err := os.RemoveAll(d.inodes); err != nil {
		d.t.Fatal(err)
	}
}

// takeSpace takes that percentage of all, giveSpace gives it back. Space is
// allocated and not written.
func (d *disk) takeSpace(percent uint64) {
	d.t.Helper()
	file, err := os.Create(d.ballast)
	if err != nil {
		d.t.Fatal(err)
	}
	u := d.usage()
	if err := errors.Join(unix.Fallocate(int(file.Fd()), 0, 0, int64(u.Blocks*percent/100)*u.Bsize), file.Close()); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) giveSpace() {
	d.t.Helper()
	if err := os.Remove(d.ballast); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
}

// startAgent starts taintlet with that configuration where the kubelet lives, and returns
// the file of the configuration.
func startAgent(t *testing.T, c *cluster.Cluster, k *kubelet.Kubelet, text string) (configFile string) {
	t.Helper()
	dir := t.TempDir()
	program, err := process.BuildAgent(t.Context(), dir, process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.GrantAsAgent(t.Context(), bed.User); err != nil {
		t.Fatal(err)
	}
	identity, err := c.Config(bed.User)
	if err != nil {
		t.Fatal(err)
	}
	configFile, log := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "log")
	write(t, configFile, text)
	command := exec.Command(program, "--node-name="+nodeName, "--kubeconfig="+cluster.Kubeconfig(t, identity), "--config="+configFile, "--listen=")
	agent, err := k.StartInside("the agent", command, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agent.Kill(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(log); t.Failed() {
			t.Logf("log of the agent: %v\n%s", err, text)
		}
	})
	return configFile
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keepCompany adds a Node that is always ready, for the length of the test. When
// no Node is, the lifecycle controller takes itself for the one that is cut off,
// and sets no NoExecute taint (handleDisruption in
// pkg/controller/nodelifecycle/node_lifecycle_controller.go of Kubernetes).
func keepCompany(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	company := c.Register(t, "company")
	var group sync.WaitGroup
	group.Go(func() { // its Lease is renewed too seldom for the grace period of this controller
		beat := time.NewTicker(time.Second)
		defer beat.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case <-beat.C:
			}
			if err := company.Heartbeat(t.Context()); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(group.Wait)
}
