package hosts_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/hosts"
	"github.com/taintlet/taintlet/test/kubelet"
)

// incident is what happens to a machine, and what is right to say of it.
type incident struct {
	name string
	// start is a script in the machine. do, if not nil, is done after it.
	start string
	do    func(context.Context, *hosts.Host) error

	want want
	// lasts is how long the incident goes on after the taint, or, without a taint, after its
	// start. It ends earlier when the kubelet's own condition tells of it.
	lasts   time.Duration
	kubelet corev1.NodeConditionType // its condition of the same kind; empty: it has none

	restarts bool // the agent, or all of the machine

	kill string // a unit that is ended first, without a new process
	end  string // script; undo, if not nil, is done after it
	undo func(context.Context, *hosts.Host) error
}

// want is what taintlet has to say. Without a taint no taint of its own may appear.
type want struct {
	condition corev1.NodeConditionType // empty: of no condition
	reasons   []string
	taint     string
	words     []string // parts of the message
	not       []string // no parts of the message
	within    time.Duration
}

// Programs for python3 in the machine. holdMemory takes memory until less than so many
// MiB are available, and takes more whenever there is more.
const (
	holdMemory = `
import time, sys
held = []
def available():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) >> 10
while True:
    if available() > int(sys.argv[1]):
        held.append(b"x" * (4 << 20))
    else:
        time.sleep(0.05)
`
	// shareMemory forks before it takes more: six processes have the same 600 MiB.
	shareMemory = `
import os
shared = b"x" * (600 << 20)
for _ in range(5):
    if os.fork() == 0:
        break
` + holdMemory
	forkUntilRefused = `
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
            os._exit(0)
    except OSError:
        time.sleep(0.1)
`
	fillConnectionTable = `
import socket, time
while True:
    for port in range(20000, 24000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            try:
                sender.sendto(b"x", ("10.0.2.2", port))
            except OSError:
                pass
`
)

// unit runs a program for python3 as a unit of systemd, without a limit of tasks. Where the
// machine can start no shell any more, systemd ends the unit.
func unit(name, program, arguments string) string {
	return "cat > /run/" + name + ".py <<'END'" + program + "END\n" +
		"systemd-run --quiet --collect --unit=" + name + " --property=TasksMax=infinity --property=RuntimeMaxSec=300 --property=KillSignal=SIGKILL python3 /run/" + name + ".py " + arguments
}

const fillDisk = `fallocate -l $(( ($(stat -f -c '%a * %S' /var/lib/kubelet)) * 96 / 100 )) /var/lib/kubelet/ballast && sync`

// fillQuota gives the kubelet's folders a project whose quota a new file uses up. The disk has space
// left. A folder may vanish meanwhile. Files that were there before keep their project.
const fillQuota = `find /var/lib/kubelet -xdev -type d -exec chattr -f -p 7 +P {} + || true
fallocate -l 100M /var/lib/kubelet/ballast && lsattr -p /var/lib/kubelet/ballast | grep -q '^ *7 ' && setquota -P 7 0 1024 0 0 /var/lib/state`

// replaceDisk puts another target of the device mapper below the file system of kubelet and
// containerd, and writes to it.
func replaceDisk(target string) string {
	return `dmsetup suspend --nolockfs state; dmsetup load state --table "0 $(blockdev --getsz /dev/vdc) ` + target + `"; dmsetup resume state
timeout 1 sh -c "echo x > /var/lib/kubelet/noticed" || true`
}

// mendDisk puts the disk itself there again.
const mendDisk = `dmsetup suspend --nolockfs state; dmsetup load state --table "0 $(blockdev --getsz /dev/vdc) linear /dev/vdc 0"; dmsetup resume state`

// rightClock sets the clock to the one that keeps running when the machine is off.
const rightClock = "date -s @$(cat /sys/class/rtc/rtc0/since_epoch)"

// killAgent kills taintlet and returns when another process of it runs.
func killAgent(kill string) string {
	return `before=$(pidof taintlet) && ` + kill + `
until after=$(pidof taintlet) && [ "$after" != "$before" ]; do sleep 0.2; done`
}

const (
	killed = "kill -KILL $before"
	// killedByKernel lets the OOM killer choose the agent.
	killedByKernel = "echo 1000 > /proc/$before/oom_score_adj && echo f > /proc/sysrq-trigger"
)

func incidents() []incident {
	const (
		memoryTaint  = corev1.TaintNodeMemoryPressure
		diskTaint    = corev1.TaintNodeDiskPressure
		pidTaint     = corev1.TaintNodePIDPressure
		networkTaint = corev1.TaintNodeNetworkUnavailable
	)
	memory := want{condition: "HostMemoryPressure", taint: memoryTaint, reasons: []string{"MemoryLow", "MemoryStalled", "MemoryStalledFully"}}
	memoryOf := func(words string) want {
		m := memory
		m.words, m.not = []string{words}, []string{"none of it by the host's own reclaim"}
		return m
	}
	full := want{
		condition: "HostDiskPressure", taint: diskTaint, reasons: []string{"SpaceLow"},
		words: []string{"kubelet", "/dev/mapper/state", "ext4"}, not: []string{"/scratch"},
	}
	dead := want{
		condition: "HostDiskPressure", taint: diskTaint,
		reasons: []string{"FileSystemReadOnly", "FileSystemShutDown", "FileSystemFailed", "WriteFailed"}, words: []string{"/dev/mapper/state"}, not: []string{"/scratch"},
	}
	slow := want{condition: "HostDiskPressure", taint: diskTaint, reasons: []string{"WriteSlow", "WriteBlocked", "FileSystemBlocked"}, words: dead.words, not: dead.not}
	return []incident{
		{
			name: "the default route is removed", start: "ip route del default",
			want: want{
				condition: "HostNetworkUnavailable", taint: networkTaint, reasons: []string{"RouteLost"}, words: []string{"no default route"}, within: 15 * time.Second,
			},
			lasts: 40 * time.Second, end: "ip route replace default via 10.0.2.2",
		},
		{
			name: "the kubelet's disk is full", start: fillDisk,
			want: full, lasts: 40 * time.Second, kubelet: corev1.NodeDiskPressure, end: "rm -f /var/lib/kubelet/ballast",
		},
		{
			name: "the project quota of the kubelet's folder is used up", start: fillQuota,
			want: want{
				condition: "HostDiskPressure", taint: diskTaint, reasons: []string{"WriteNoSpace"}, words: []string{"/dev/mapper/state", "quota"}, not: full.not,
			},
			lasts: 40 * time.Second, kubelet: corev1.NodeDiskPressure, end: "setquota -P 7 0 0 0 0 /var/lib/state; rm -f /var/lib/kubelet/ballast",
		},
		{
			name: "a systemd unit takes memory", start: unit("hog", holdMemory, "75"),
			want: memoryOf("hog.service"), lasts: 40 * time.Second, kubelet: corev1.NodeMemoryPressure, end: "systemctl stop hog",
		},
		{
			name: "the connection table is full", start: "sysctl -q net.netfilter.nf_conntrack_max=200; " + unit("senders", fillConnectionTable, ""),
			want: want{
				condition: "HostNetworkUnavailable", taint: networkTaint, reasons: []string{"ConntrackDrops"},
			},
			lasts: 20 * time.Second, end: "systemctl stop senders; sysctl -q net.netfilter.nf_conntrack_max=65536; conntrack -F",
		},
		{
			name: "the cable is out for a minute", do: func(_ context.Context, h *hosts.Host) error { return h.SetCable(false) },
			lasts: 70 * time.Second, kubelet: corev1.NodeReady, undo: func(_ context.Context, h *hosts.Host) error { return h.SetCable(true) },
		},
		{
			// Without peers that are healthy, nothing shows that the fault is this host's.
			name: "packets of more than 1200 bytes are lost", start: "iptables -I OUTPUT -o eth0 -m length --length 1201:65535 -j DROP",
			lasts: time.Minute, end: "iptables -D OUTPUT -o eth0 -m length --length 1201:65535 -j DROP",
		},
		{
			name: "the machine stands still for 10 s", do: standStill(10 * time.Second), lasts: 40 * time.Second, end: rightClock,
		},
		{
			name: "the machine stands still for ten minutes", do: standStill(10 * time.Minute), lasts: 40 * time.Second, kubelet: corev1.NodeReady,
			end: rightClock, // which stood still as well
		},
		{
			name: "the agent is killed", start: killAgent(killed), lasts: 20 * time.Second, restarts: true,
		},
		{
			name: "the agent is killed while a unit holds the memory", start: unit("hog", holdMemory, "75"),
			do:   taintedThen(memory, script(killAgent(killed))),
			want: memory, lasts: 10 * time.Second, restarts: true, end: "systemctl stop hog",
		},
		{
			name: "a crash of the kernel while the kubelet's disk is full", start: fillDisk, do: taintedThen(full, reboot),
			want: full, restarts: true, end: "rm -f /var/lib/kubelet/ballast",
		},
		{
			name: "the kubelet's disk answers with errors", start: replaceDisk("error"), want: dead,
			lasts: 40 * time.Second, kubelet: corev1.NodeReady, restarts: true, end: mendDisk, undo: reboot,
		},
		{
			name: "files in shared memory", start: "mount -o remount,size=100% /dev/shm; " +
				"systemd-run --quiet --collect --unit=files sh -c 'head -c $(( $(sed -n \"s/MemAvailable: *\\([0-9]*\\).*/\\1/p\" /proc/meminfo) / 1024 - 100 ))M /dev/zero > /dev/shm/file; sleep 10000'",
			want: memoryOf("shared memory and tmpfs"), lasts: 40 * time.Second, kubelet: corev1.NodeMemoryPressure, end: "systemctl stop files; rm -f /dev/shm/file",
		},
		{
			name: "kswapd keeps up while a file is read again and again", start: "cat /cargo/kubelet /cargo/*.tar > /var/tmp/pages; " +
				"systemd-run --quiet --collect --unit=reader sh -c 'while :; do cat /var/tmp/pages /usr/lib/*/*.so* > /dev/null; done'; " + unit("hog", holdMemory, "40"),
			want: memoryOf("hog.service"), lasts: 40 * time.Second, kubelet: corev1.NodeMemoryPressure, end: "systemctl stop reader hog; rm -f /var/tmp/pages",
		},
		{
			name: "forked processes share their memory", start: unit("sharer", shareMemory, "75"),
			want: memoryOf("sharer.service"), lasts: 40 * time.Second, kubelet: corev1.NodeMemoryPressure, end: "systemctl stop sharer",
		},
		{
			name: "a pod takes memory", do: takeMemory,
			want: memoryOf("pod "), lasts: 40 * time.Second, kubelet: corev1.NodeMemoryPressure, undo: giveMemory,
		},
		{
			// It comes after the incidents that have to name who took memory: the agent reads processes for 1 %
			// of the time, and 2,000 of them are slow to read on an emulated machine.
			name: "a unit without TasksMax forks", start: "sysctl -q kernel.pid_max=2500; " + unit("forks", forkUntilRefused, ""),
			want: want{
				condition: "HostPIDPressure", taint: pidTaint, reasons: []string{"PIDsLow", "PIDsExhausted"},
				words: []string{"forks.service"},
			},
			// The container may be restarted: when containerd's shim gets no thread, it ends, and
			// containerd then kills the agent, which runs on until then.
			restarts: true,
			lasts:    40 * time.Second, kubelet: corev1.NodePIDPressure, kill: "forks", end: "sysctl -q kernel.pid_max=4194304",
		},
		{
			name: "the OOM killer takes the agent while a unit holds the memory", start: unit("hog", holdMemory, "75"),
			do:   taintedThen(memory, script(killAgent(killedByKernel))),
			want: memory, lasts: 10 * time.Second, restarts: true, end: "systemctl stop hog",
		},
		{
			name: "the host is rebooted while it lacks memory", start: unit("hog", holdMemory, "75"),
			want: memory, lasts: 10 * time.Second, restarts: true, undo: rebootBy(script("systemctl --no-block reboot")),
		},
		{
			name: "writes to the kubelet's disk fail for 5 s of 10", start: replaceDisk("flakey /dev/vdc 0 5 5 1 error_writes"),
			want: dead, lasts: 40 * time.Second, kubelet: corev1.NodeReady, restarts: true, end: mendDisk, undo: reboot,
		},
		{
			name: "each write to the kubelet's disk takes 2.5 s", start: replaceDisk("delay /dev/vdc 0 0 /dev/vdc 0 2500"),
			want: slow, lasts: 40 * time.Second, kubelet: corev1.NodeReady, end: mendDisk,
		},
		{
			name: "the kubelet's disk hangs", start: "dmsetup suspend --nolockfs --noflush state",
			want: slow, lasts: 40 * time.Second, kubelet: corev1.NodeReady, end: "dmsetup resume state",
		},
		{
			name: "the kubelet's disk is taken out", start: "echo 1 > $(readlink -f /sys/block/vdc/device)/../remove; echo x > /var/lib/kubelet/noticed || true",
			want: dead, lasts: 40 * time.Second, kubelet: corev1.NodeReady, restarts: true, undo: reboot,
		},
		{
			name: "the kernel finds the kubelet's file system damaged", start: "echo 1 > /sys/fs/ext4/dm-0/trigger_fs_error",
			want: dead, lasts: 40 * time.Second, kubelet: corev1.NodeReady, restarts: true, undo: reboot,
		},
		{
			name: "the nameserver gives no answer", start: "iptables -I OUTPUT -d 10.0.2.3 -j DROP",
			want: want{condition: "HostNetworkUnavailable", reasons: []string{"NotProven"}, words: []string{"10.0.2.3"}}, // there are no peers to compare with
			end:  "iptables -D OUTPUT -d 10.0.2.3 -j DROP",
		},
		{
			name: "the clock is set an hour ahead and back while a unit holds the memory", start: unit("hog", holdMemory, "75"),
			do:   taintedThen(memory, script("date -s '+1 hour'")),
			want: memory, lasts: 20 * time.Second, end: "systemctl stop hog; " + rightClock,
		},
		{
			name: "the clock is set two hours behind and back", start: "date -s '-2 hours'",
			lasts: 70 * time.Second, kubelet: corev1.NodeReady, end: rightClock,
		},
	}
}

// reboot resets the machine, as a crash or a watchdog does.
func reboot(ctx context.Context, h *hosts.Host) error {
	return rebootBy(func(context.Context, *hosts.Host) error { return h.Monitor("system_reset", nil) })(ctx, h)
}

// rebootBy returns when the machine's kubelet and taintlet run again.
func rebootBy(order func(context.Context, *hosts.Host) error) func(context.Context, *hosts.Host) error {
	return func(ctx context.Context, h *hosts.Host) error {
		began := time.Now()
		if err := order(ctx, h); err != nil {
			return err
		}
		if err := h.WaitBoot(ctx); err != nil {
			return err
		}
		if _, err := h.Nodes.Wait(ctx, began, "the kubelet reports", func(node *corev1.Node) bool {
			ready := cluster.Condition(node, corev1.NodeReady)
			return ready != nil && ready.LastHeartbeatTime.After(began)
		}); err != nil {
			return err
		}
		return h.WaitAgent(ctx, began)
	}
}

func script(text string) func(context.Context, *hosts.Host) error {
	return func(ctx context.Context, h *hosts.Host) error {
		_, err := h.Run(ctx, text)
		return err
	}
}

// takeMemory runs holdMemory in a pod, with the host's python3. The kubelet may evict it.
func takeMemory(ctx context.Context, h *hosts.Host) error {
	pod := cluster.NewPod("hog", hosts.NodeName)
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = hosts.NodeName, new(int64)
	container := &pod.Spec.Containers[0]
	container.Image, container.ImagePullPolicy = kubelet.SandboxImage, corev1.PullNever
	container.Command = []string{"/usr/bin/python3", "-c", holdMemory, "75"}
	for name, folder := range map[string]string{"usr": "/usr", "lib": "/usr/lib", "lib64": "/usr/lib64"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name, ReadOnly: true})
	}
	_, err := h.Cluster.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

func giveMemory(ctx context.Context, h *hosts.Host) error {
	return h.Cluster.Client().CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "hog", *metav1.NewDeleteOptions(0))
}

// taintedThen does something while the Node has the taint, after its Event: an agent that is killed
// has no time to send it.
func taintedThen(w want, do func(context.Context, *hosts.Host) error) func(context.Context, *hosts.Host) error {
	return func(ctx context.Context, h *hosts.Host) error {
		began := time.Now()
		if _, err := h.Nodes.Wait(ctx, began, "the Node has "+w.taint, hasTaint(w.taint)); err != nil {
			return err
		}
		if err := waitEvent(ctx, h, began.Add(-time.Minute), w); err != nil { // the taint may be older
			return err
		}
		return do(ctx, h)
	}
}

// standStill stops the machine's processors for that long.
func standStill(lasts time.Duration) func(context.Context, *hosts.Host) error {
	return func(_ context.Context, h *hosts.Host) error {
		if err := h.Monitor("stop", nil); err != nil {
			return err
		}
		time.Sleep(lasts) // the incident
		return h.Monitor("cont", nil)
	}
}
