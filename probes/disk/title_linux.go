package disk

import (
	"strings"

	"github.com/taintlet/taintlet/probes/trend"
)

// mostTitle is the longest title in a message, in bytes.
const mostTitle = 256

// role is what the host keeps on a file system.
type role uint8

const (
	kubeletRole role = 1 << iota
	runtimeRole
)

// roleOf returns what a directory of the host, or a path, is known for.
func roleOf(path string) (r role) {
	if strings.Contains(path, "/kubelet") || strings.Contains(path, "/volumes/kubernetes.io~") {
		r |= kubeletRole
	}
	for _, name := range []string{"containerd", "/docker/", "/containers/storage", "/crio"} {
		if strings.Contains(path, name) {
			r |= runtimeRole
		}
	}
	return r
}

// role returns what lies on the path's file system: in a pod, by the directories of the host
// that are mounted there.
func (m *pathMounts) role(path string) role {
	if m.own.upper != "" {
		return roleOf(m.own.upper)
	}
	return roleOf(path) | roleOf(m.own.root)
}

// lowest returns the mount on which the path's files lie; zero: not known.
func (m *pathMounts) lowest() mount {
	if m.own.upper != "" {
		return m.beneath
	}
	return m.own
}

// isCertain says that what is known of the lowest mount does not come from a name alone.
func (m *pathMounts) isCertain() bool { return m.own.upper == "" || m.isSure }

// isUnderQuota says that space may be that of a quota which the container runtime has given to a
// container, and that nothing shows the file system itself.
func (m *pathMounts) isUnderQuota() bool {
	return m.own.upper != "" && m.beneath.quota && m.through.point == ""
}

// title names a path's file system as the host knows it, by its use, device and type: "the
// container runtime's file system, /dev/vda1 ext4". roles are all known uses of the file system.
func (m *pathMounts) title(path string, roles role) string {
	lowest := m.lowest()
	title := "the file system of " + path
	switch host := m.host.point; {
	case roles == kubeletRole|runtimeRole:
		title = "the kubelet's and the container runtime's file system"
	case roles == kubeletRole:
		title = "the kubelet's file system"
	case roles == runtimeRole:
		title = "the container runtime's file system"
	case host == "/":
		title = "the root file system"
	case host != "":
		title = "the file system at " + host
	}
	switch source := lowest.source; {
	case lowest.fsType == "":
	case source == "" || source == "none" || source == lowest.fsType:
		title += ", " + lowest.fsType
	default:
		title += ", " + source + " " + lowest.fsType
	}
	return trend.Printable(title, mostTitle)
}
