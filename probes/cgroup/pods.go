// Package cgroup finds the control groups that kubelets keep all their pods in.
package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Pods finds a file of the control groups that hold all pods of a kubelet, such as the
// limit that the kubelet sets for them (--system-reserved, --kube-reserved).
type Pods struct {
	root       string // where control groups are mounted
	controller string
	files      []string
	// found are the files, as they were when they were looked for last.
	found    []string
	lookedAt time.Time
}

// NewPods returns a finder of files below the sys of a host. The controller is the name
// of its hierarchy with control groups v1. The files are names of which a group has
// one.
func NewPods(sys, controller string, files ...string) *Pods {
	return &Pods{root: filepath.Join(sys, "fs", "cgroup"), controller: controller, files: files}
}

// lookAgain is how often the control groups are looked for: a kubelet may start after
// the agent. When a file is gone, they are looked for at once.
const lookAgain = time.Minute

// Files returns the paths of the files. There are none where no kubelet runs, or
// where the control groups of the host are not visible.
func (p *Pods) Files(now time.Time) []string {
	if since := now.Sub(p.lookedAt); since < 0 || since >= lookAgain || slices.ContainsFunc(p.found, isGone) {
		p.found, p.lookedAt = p.find(), now
	}
	return p.found
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

const (
	// ownDepth is how deep the group of this host's kubelet usually lies: the second
	// level is that of a --cgroup-root of one name, such as the /kubelet of kind.
	ownDepth = 2
	// mostDepth is how deep it can lie: below a --cgroup-root of more names, or where
	// the host is a container itself and sees the paths of its own host
	// (docker/<id>/kubelet/kubepods). Deeper levels than ownDepth are looked at only
	// where there is no other group: they may belong to clusters in containers.
	mostDepth = 4
)

// find looks for the files, in the hierarchy of control groups v2, or in those that
// the controller can be in where v1 is mounted.
func (p *Pods) find() (found []string) {
	var folders []string
	for _, hierarchy := range []string{p.controller, "unified"} {
		if folder := filepath.Join(p.root, hierarchy); isFolder(folder) {
			folders = append(folders, folder)
		}
	}
	if folders == nil {
		folders = []string{p.root}
	}
	for depth := 1; depth <= mostDepth && (depth <= ownDepth || found == nil); depth++ {
		var next []string
		for _, folder := range folders {
			for _, inside := range subfolders(folder) {
				if isOfPods(filepath.Base(inside)) {
					found = append(found, p.filesIn(inside)...)
				} else {
					next = append(next, inside)
				}
			}
		}
		folders = next
	}
	return found
}

// isOfPods says whether a control group holds all pods of a kubelet, by its name: with
// the driver cgroupfs, and with systemd, where the name repeats those above it
// (cgroupName.ToSystemd in pkg/kubelet/cm/cgroup_manager_linux.go).
func isOfPods(name string) bool {
	return name == "kubepods" || name == "kubepods.slice" || strings.HasSuffix(name, "-kubepods.slice")
}

// filesIn returns the files that a group has.
func (p *Pods) filesIn(group string) (found []string) {
	for _, file := range p.files {
		if path := filepath.Join(group, file); !isGone(path) {
			found = append(found, path)
		}
	}
	return found
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// subfolders returns the groups in a group. There are none in a group that is gone, or
// that cannot be read.
func subfolders(folder string) (inside []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			inside = append(inside, filepath.Join(folder, entry.Name()))
		}
	}
	return inside
}
