package consumers

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/probes/trend"
)

// Kind says what a Group is.
type Kind uint8

// The kinds of a Group, from the most telling to the least.
const (
	KindPod     Kind = iota + 1 // of a kubelet; the name is the pod's UID
	KindUnit                    // of systemd; the name is the unit's
	KindCgroup                  // any other control group; the name is its path
	KindProcess                 // in no control group; the name is that of the process
	KindKernel                  // threads of the kernel
	KindOwn                     // the container in which the reader runs
)

// String returns the kind in one word.
func (k Kind) String() string {
	return [...]string{"none", "pod", "unit", "cgroup", "process", "kernel", "own"}[k]
}

// Group is the processes of one owner. The zero value is none.
type Group struct {
	Kind Kind
	Name string
}

// podPrefix begins a pod's name in a text, and its UID follows.
const podPrefix = "pod "

// String is the group's name in messages.
func (g Group) String() string {
	switch g.Kind {
	case KindPod:
		return podPrefix + g.Name
	case KindProcess:
		return "host process " + g.Name
	case KindKernel:
		return "kernel threads"
	case KindOwn:
		return "taintlet's own container"
	}
	return g.Kind.String() + " " + g.Name
}

// groupOf returns the group that the text of /proc/PID/cgroup names: the pod, else the unit, else
// the control group. It is none for a process in the root of every hierarchy. A line is
// "hierarchy:controllers:path" (cgroups(7)). A reader in a private control group namespace sees
// other paths relative to its own container, "/../../pod…/…", and its own container as the root.
func groupOf(text string, isPrivate bool) (found Group) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		_, path, isLine := strings.Cut(rest, ":")
		if !isLine || !strings.HasPrefix(path, "/") {
			continue
		}
		g := groupAt(path, isPrivate)
		if g.Kind != 0 && (found.Kind == 0 || g.Kind < found.Kind) {
			found = g
		}
	}
	return found
}

// groupAt returns the group of one path. The outermost control group of a pod is that of this
// Node's pod, even if the pod runs pods inside.
func groupAt(path string, isPrivate bool) Group {
	if isPrivate && path == "/" {
		return Group{Kind: KindOwn}
	}
	path = strings.TrimSuffix(path, " (deleted)")
	var unit, rest string
	for name := range strings.SplitSeq(path, "/") {
		if uid := podUID(name); uid != "" {
			return Group{KindPod, uid}
		}
		if isUnit(name) && (unit == "" || !isUser(unit)) {
			unit = name
		}
		if name != "" && name != ".." {
			rest += "/" + name
		}
	}
	switch {
	case unit != "":
		return Group{KindUnit, trend.Printable(unit, maxName)}
	case rest != "":
		return Group{KindCgroup, trend.Printable(rest, maxName)}
	}
	return Group{}
}

// isUnit reports whether a control group is that of a unit with processes: a service, a
// scope, or the slice of one user. Other slices only hold units.
func isUnit(name string) bool {
	return strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") || isUser(name)
}

// isUser reports whether a unit holds all sessions of one user, which are one consumer.
func isUser(name string) bool {
	return strings.HasPrefix(name, "user-") && strings.HasSuffix(name, ".slice")
}

// podUID returns the UID of the pod whose control group has that name; empty: it is not a
// pod's. The driver cgroupfs names it "pod" and the UID. The driver systemd writes the names of
// the groups above before it, ".slice" behind it, and "_" for each "-" of the UID
// (GetPodContainerName in pkg/kubelet/cm/pod_container_manager_linux.go,
// cgroupName.ToSystemd in pkg/kubelet/cm/cgroup_manager_linux.go).
func podUID(name string) string {
	if inner, isSlice := strings.CutSuffix(name, ".slice"); isSlice {
		at := strings.LastIndexByte(inner, '-')
		name = strings.ReplaceAll(inner[at+1:], "_", "-")
	}
	uid, isPod := strings.CutPrefix(name, "pod")
	if !isPod || !isUID(uid) {
		return ""
	}
	return uid
}

// isUID reports whether a text is the UID of a pod: that of the API server, or the hash of
// the manifest of a static pod, which has 32 digits.
func isUID(text string) bool {
	if len(text) != 36 && len(text) != 32 {
		return false
	}
	for i := range len(text) {
		isDash := len(text) == 36 && (i == 8 || i == 13 || i == 18 || i == 23)
		isDigit := text[i] >= '0' && text[i] <= '9' || text[i] >= 'a' && text[i] <= 'f'
		if isDash != (text[i] == '-') || !isDash && !isDigit {
			return false
		}
	}
	return true
}

// PodsIn returns the UIDs of the pods that a text names, each once, in their order. Anybody
// may have written the text.
func PodsIn(text string) (uids []string) {
	for _, rest := range strings.Split(text, podPrefix)[1:] {
		uid, _, _ := strings.Cut(rest, " ")
		uid = strings.TrimRight(uid, ",;:")
		if isUID(uid) && !slices.Contains(uids, uid) {
			uids = append(uids, uid)
		}
	}
	return uids
}

// maxName is the longest name of a group in a message, in bytes. The name of a control group can
// have 255 bytes, and its path many names.
const maxName = 96
