package hosts_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/hosts"
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
	condition corev1.NodeConditionType
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

// failDisk replaces the disk of kubelet and containerd by one that answers all with an error.
const failDisk = `dmsetup suspend --nolockfs state && dmsetup load state --table "0 $(blockdev --getsz /dev/vdc) error" && dmsetup resume state
echo x > /var/lib/kubelet/noticed || true`

const mendDisk = `dmsetup suspend --nolockfs state; dmsetup load state --table "0 $(blockdev --getsz /dev/vdc) linear /dev/vdc 0"; dmsetup resume state`

// killAgent kills taintlet and returns when another process of it runs.
const killAgent = `before=$(pidof taintlet) && kill -KILL $before
until after=$(pidof taintlet) && [ "$after" != "$before" ]; do sleep 0.2; done`

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
			name: "the machine stands still for 10 s", do: standStill(10 * time.Second), lasts: 40 * time.Second,
		},
		{
			name: "the agent is killed", start: killAgent, lasts: 20 * time.Second, restarts: true,
		},
		{
			name: "the agent is killed while a unit holds the memory", start: unit("hog", holdMemory, "75"),
			do: taintedThen(memoryTaint, func(ctx context.Context, h *hosts.Host) error {
				_, err := h.Run(ctx, killAgent)
				return err
			}),
			want: memory, lasts: 10 * time.Second, restarts: true, end: "systemctl stop hog",
		},
		{
			name: "a crash of the kernel while the kubelet's disk is full", start: fillDisk, do: taintedThen(diskTaint, reboot),
			want: full, restarts: true, end: "rm -f /var/lib/kubelet/ballast",
		},
		{
			name: "the kubelet's disk answers with errors", start: failDisk,
			want: want{
				condition: "HostDiskPressure", taint: diskTaint,
				reasons: []string{"FileSystemReadOnly", "FileSystemShutDown", "FileSystemFailed", "WriteFailed"}, words: []string{"/dev/mapper/state"}, not: []string{"/scratch"},
			},
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
			name: "a unit without TasksMax forks", start: "sysctl -q kernel.pid_max=2500; " + unit("forks", forkUntilRefused, ""),
			want: want{
				condition: "HostPIDPressure", taint: pidTaint, reasons: []string{"PIDsLow", "PIDsExhausted"},
				words: []string{"forks.service"},
			},
			lasts: 40 * time.Second, kubelet: corev1.NodePIDPressure, kill: "forks", end: "sysctl -q kernel.pid_max=4194304",
		},
	}
}

// reboot resets the machine, as a crash or a watchdog does, and returns when its kubelet
// and taintlet run again.
func reboot(ctx context.Context, h *hosts.Host) error {
	began := time.Now()
	if err := h.Monitor("system_reset", nil); err != nil {
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

// taintedThen does something while the Node has the taint.
func taintedThen(taint string, do func(context.Context, *hosts.Host) error) func(context.Context, *hosts.Host) error {
	return func(ctx context.Context, h *hosts.Host) error {
		if _, err := h.Nodes.Wait(ctx, time.Now(), "the Node has "+taint, hasTaint(taint)); err != nil {
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
