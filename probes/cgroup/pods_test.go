package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// write makes the control groups' file at path hold a number.
func write(t *testing.T, sys, path string) {
	t.Helper()
	path = filepath.Join(sys, "fs/cgroup", path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files []string
		want  []string // nil: as files
	}{
		"v2, systemd":                            {files: []string{"kubepods.slice/pids.max"}},
		"v2, cgroupfs":                           {files: []string{"kubepods/pids.max"}},
		"v2, systemd, --cgroup-root=/kubelet":    {files: []string{"kubelet.slice/kubelet-kubepods.slice/pids.max"}},
		"v2, systemd, --cgroup-root=/a/b":        {files: []string{"a.slice/a-b.slice/a-b-kubepods.slice/pids.max"}},
		"v2, cgroupfs, --cgroup-root=/a/b":       {files: []string{"a/b/kubepods/pids.max"}},
		"v2, a container":                        {files: []string{"docker/4f1d/kubepods/pids.max"}},
		"v2, kind":                               {files: []string{"docker/4f1d/kubelet/kubepods/pids.max"}},
		"v2, kind, systemd":                      {files: []string{"system.slice/docker-4f1d.scope/kubelet.slice/kubelet-kubepods.slice/pids.max"}},
		"v1":                                     {files: []string{"pids/kubepods/pids.max"}},
		"v1, --cgroup-root=/a/b":                 {files: []string{"pids/a/b/kubepods/pids.max"}},
		"v1, kind":                               {files: []string{"pids/docker/4f1d/kubelet/kubepods/pids.max"}},
		"hybrid":                                 {files: []string{"unified/kubepods/pids.max", "unified/system.slice/pids.max"}, want: []string{"unified/kubepods/pids.max"}},
		"hybrid, systemd":                        {files: []string{"unified/kubepods.slice/pids.max"}},
		"hybrid, --cgroup-root=/a":               {files: []string{"unified/a/kubepods/pids.max"}},
		"both of hybrid":                         {files: []string{"pids/kubepods/pids.max", "unified/kubepods/pids.max"}},
		"two kubelets":                           {files: []string{"kubepods/pids.max", "kubelet/kubepods/pids.max"}},
		"a cluster in containers":                {files: []string{"kubepods/pids.max", "docker/4f1d/kubepods/pids.max"}, want: []string{"kubepods/pids.max"}},
		"a cluster in pods":                      {files: []string{"kubepods/pids.max", "kubepods/kubepods/pids.max"}, want: []string{"kubepods/pids.max"}},
		"too deep":                               {files: []string{"a/b/c/d/kubepods/pids.max"}, want: []string{}},
		"another controller":                     {files: []string{"kubepods/memory.max", "pids/kubepods/memory.max"}, want: []string{}},
		"another group":                          {files: []string{"notkubepods/pids.max", "kubepods.service/pids.max"}, want: []string{}},
		"the controller's hierarchy has no pods": {files: []string{"pids/system.slice/pids.max"}, want: []string{}},
		"nothing":                                {want: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sys := t.TempDir()
			for _, file := range test.files {
				write(t, sys, file)
			}
			if test.want == nil {
				test.want = test.files
			}
			var got []string
			for _, path := range NewPods(sys, "pids", "pids.max").Files(time.Now()) {
				got = append(got, strings.TrimPrefix(path, sys+"/fs/cgroup/"))
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// A group that comes is seen within a minute, and one that is gone at once.
func TestPodsComeAndGo(t *testing.T) {
	t.Parallel()
	sys, now := t.TempDir(), time.Unix(1000, 0)
	p := NewPods(sys, "pids", "pids.max")
	check := func(step string, at time.Time, want int) {
		t.Helper()
		if got := p.Files(at); len(got) != want {
			t.Errorf("%s: %q, want %d", step, got, want)
		}
	}
	check("nothing yet", now, 0)
	write(t, sys, "kubepods/pids.max")
	check("a moment later", now.Add(lookAgain-1), 0)
	check("a minute later", now.Add(lookAgain), 1)
	if err := os.RemoveAll(filepath.Join(sys, "fs/cgroup/kubepods")); err != nil {
		t.Fatal(err)
	}
	check("gone", now.Add(lookAgain+1), 0)
	write(t, sys, "kubepods/pids.max")
	check("the clock ran backwards", now, 1)
}
