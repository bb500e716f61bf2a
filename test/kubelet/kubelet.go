// Package kubelet starts a real kubelet, with a real containerd, as a Node of a
// control plane of test/cluster. Both live in a mount namespace of their own:
// their /var/lib, /var/log and /run are not the host's, so that they keep apart
// from a kubelet or containerd of the host, and vanish with the last process.
//
// Network, PIDs and memory are the host's, as for any kubelet.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const (
	startTimeout = 2 * time.Minute
	// defaultDiskSize is of a file with holes: it takes what is written to it.
	defaultDiskSize = 2 << 30
)

// Options says what a Kubelet differs in from the usual one.
type Options struct {
	NodeName string // empty: kubelet
	// EvictionHard are the thresholds of the eviction manager by signal, such
	// as memory.available. They are all that there is: those that are not given
	// do not get the kubelet's defaults. nil: the kubelet's defaults.
	EvictionHard map[string]string
	// EvictionPressureTransitionPeriod is how long a pressure condition outlives
	// its cause. 0: the kubelet's default, 5 minutes.
	EvictionPressureTransitionPeriod time.Duration
	// KernelMemcgNotification lets the kernel tell the eviction manager that
	// memory.available crosses a threshold. Off in a kubelet by default.
	KernelMemcgNotification bool
	// NodeStatusUpdateFrequency is how often the kubelet samples its conditions
	// and writes its Node's status. 0: the kubelet's defaults, a sample every 10
	// seconds and a write every 5 minutes if nothing has changed.
	NodeStatusUpdateFrequency time.Duration
	// SyncFrequency is how often the kubelet compares pods with what they are to
	// be; their volumes follow a changed ConfigMap then. 0: the kubelet's default,
	// a minute.
	SyncFrequency time.Duration
	// RegisterWithTaints is the flag of that name: the Node has these taints from its
	// first version on. Empty: none.
	RegisterWithTaints string
	// Pods lets pods run. It needs Go at start, and ctr beside containerd.
	Pods bool
	// DiskSize is the size, in bytes, of the file system at /var/lib. 0: 2 GiB.
	DiskSize int64
	Progress io.Writer // where to say that the kubelet is being built; nil: nowhere
}

// Kubelet is a running kubelet. Stop ends it, and the containers of its pods; if
// this process ends in any other way, kubelet and containerd end with it, and so
// do their file systems unless a container still runs, which nothing ends then;
// empty cgroups are left, and files that the next Cluster removes.
type Kubelet struct {
	NodeName string

	cluster  *cluster.Cluster
	options  Options
	binary   string
	dir      string // of all files on the host
	room     *process.Thread
	port     string // of the kubelet's API
	health   string // port of /healthz
	endTurn  func()
	cgroups  []string
	kubelet  *process.Process
	runtime  *process.Process
	stopOnce sync.Once
	stopErr  error
}

// Start builds the kubelet when it is not built yet (a minute or more), starts
// it, and returns when its Node is ready. It needs root and, on the PATH,
// containerd, runc and the tools that make and mount a file system. A host has
// one Kubelet at a time: Start waits for another one's Stop, of whatever process.
// The context bounds the start alone.
func Start(ctx context.Context, c *cluster.Cluster, options Options) (*Kubelet, error) {
	if err := checkHost(); err != nil {
		return nil, fmt.Errorf("start a kubelet: %w", err)
	}
	bin, err := cluster.Build(ctx, options.Progress, cluster.Kubelet)
	if err != nil {
		return nil, err
	}
	if options.NodeName == "" {
		options.NodeName = "kubelet"
	}
	if options.DiskSize == 0 {
		options.DiskSize = defaultDiskSize
	}
	endTurn, err := takeTurn(ctx, options.Progress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	k := &Kubelet{NodeName: options.NodeName, cluster: c, options: options, binary: filepath.Join(bin, cluster.Kubelet), endTurn: endTurn}
	if err := k.startAll(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a kubelet: %w", err), k.Stop())
	}
	return k, nil
}

func (k *Kubelet) startAll(ctx context.Context) (err error) {
	// In the cluster's folder, which is removed even if this process is killed.
	if k.dir, err = os.MkdirTemp(k.cluster.LogDir(), "kubelet-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if k.cgroups, err = absentPodCgroups(); err != nil {
		return err
	}
	ports, err := cluster.FreePorts(loopback, 2)
	if err != nil {
		return err
	}
	k.port, k.health = ports[0], ports[1]
	if err := k.writeFiles(); err != nil {
		return err
	}
	if k.room, err = newRoom(); err != nil {
		return err
	}
	if err := k.room.Do(func() error { return furnish(k.dir, k.options.DiskSize) }); err != nil {
		return err
	}
	if err := k.startRuntime(ctx); err != nil {
		return err
	}
	if k.options.Pods {
		if err := k.importSandboxImage(ctx); err != nil {
			return err
		}
	}
	if err := k.startKubelet(ctx); err != nil {
		return err
	}
	_, err = k.cluster.WaitNode(ctx, k.NodeName, ready)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, k.kubelet.Tail(20))
	}
	return nil
}

// ready says whether pods can be scheduled to the Node.
func ready(node *corev1.Node) bool {
	if cluster.HasTaint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)(node) {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (k *Kubelet) startRuntime(ctx context.Context) (err error) {
	k.runtime, err = k.startComponent("containerd", process.Command("containerd", "--config="+k.file(containerdFile)))
	if err != nil {
		return err
	}
	// It listens when all its plugins are loaded.
	return k.runtime.WaitUntil(ctx, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "unix", k.HostPath(containerdSocket))
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

func (k *Kubelet) startKubelet(ctx context.Context) error {
	started, err := k.startComponent("kubelet", process.Command(k.binary,
		"--config="+k.file(configFile),
		"--kubeconfig="+k.file(kubeconfigFile),
		"--hostname-override="+k.NodeName,
		"--root-dir="+rootDir,
		"--cert-dir="+filepath.Join(rootDir, "pki"),
		"--register-with-taints="+k.options.RegisterWithTaints,
		"-v=2",
	))
	if err != nil {
		return err
	}
	k.kubelet = started
	return k.kubelet.WaitUntil(ctx, func(ctx context.Context) error {
		_, err := process.Get(ctx, http.DefaultClient, "http://"+net.JoinHostPort(loopback, k.health)+"/healthz")
		return err
	})
}

// Kill kills the kubelet alone, as a crash would: containerd, the files and the
// Node stay. It returns when the kubelet has ended.
func (k *Kubelet) Kill() error { return k.kubelet.Kill() }

// Restart starts the kubelet again after Kill, and returns when it says that it
// is healthy. Its Node may become ready later.
func (k *Kubelet) Restart(ctx context.Context) error { return k.startKubelet(ctx) }

// StartInside starts a command where the kubelet lives, as process.Start does: the
// command sees the kubelet's /var/lib, /var/log and /run in place of the host's.
// If this process ends or Stop is called, the command is killed.
func (k *Kubelet) StartInside(name string, command *exec.Cmd, log string) (*process.Process, error) {
	return k.room.Start(name, command, log)
}

// HostPath returns where a path of the kubelet's, such as /var/lib/kubelet, is
// found by processes that do not live where it lives, as long as it runs.
func (k *Kubelet) HostPath(path string) string {
	return filepath.Join("/proc", strconv.Itoa(k.runtime.PID()), "root", path)
}

// Processes returns the process IDs of kubelet and containerd by name.
func (k *Kubelet) Processes() map[string]int {
	return map[string]int{
		"kubelet":    k.kubelet.PID(),
		"containerd": k.runtime.PID(),
	}
}

// Tail returns the last lines of both logs.
func (k *Kubelet) Tail(lines int) string {
	return k.runtime.Tail(lines) + "\n" + k.kubelet.Tail(lines)
}

// Stop ends kubelet, containerd and the containers of pods, and removes their
// files and cgroups. The Node stays, as after a crash. The error tells of what
// had ended before, other than by Kill.
func (k *Kubelet) Stop() error {
	k.stopOnce.Do(func() {
		var errs []error
		for _, p := range []*process.Process{k.kubelet, k.runtime} {
			if p != nil { // nothing that they know is to outlive them
				errs = append(errs, p.Kill())
			}
		}
		if k.room != nil {
			errs = append(errs, k.room.Do(endLodgers), k.room.Do(clear))
			k.room.Close()
		}
		errs = append(errs, removePodCgroups(k.cgroups))
		if k.dir != "" {
			errs = append(errs, os.RemoveAll(k.dir))
		}
		k.endTurn()
		k.stopErr = errors.Join(errs...)
	})
	return k.stopErr
}

func (k *Kubelet) file(name string) string { return filepath.Join(k.dir, name) }

// startComponent starts containerd or the kubelet, with its log beside those of
// the control plane.
func (k *Kubelet) startComponent(name string, command *exec.Cmd) (*process.Process, error) {
	return k.StartInside(name, command, filepath.Join(k.cluster.LogDir(), name+"-"+k.NodeName+".log"))
}
