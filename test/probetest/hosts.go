package probetest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// probes/testdata/README.md says what is special about each of the hosts.

// wellHost is the host that the hosts named edges-* are made of.
const wellHost = "everything"

// HostNamed is one of the recorded hosts.
func HostNamed(name string) probes.Host { return HostAt(filepath.Join(shared, "hosts", name)) }

// WellHost is the recorded host that has every file a probe may read.
func WellHost() probes.Host { return HostNamed(wellHost) }

// IsEdge says whether a recorded host is the well one with every file garbled.
func IsEdge(name string) bool { return strings.HasPrefix(name, "edges-") }

func hostNames(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(shared, "hosts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Hosts compares what is told of each recorded host with testdata/hosts.txt,
// which has a paragraph for each; with update it writes that file first.
func Hosts(t *testing.T, update bool, describe func(name string, h probes.Host) []string) {
	t.Helper()
	const file = "testdata/hosts.txt"
	var got []string
	for _, name := range hostNames(t) {
		h := HostNamed(name)
		paragraph := strings.Join(append([]string{name + ":"}, describe(name, h)...), "\n  ")
		got = append(got, withoutRoot(paragraph, h))
	}
	if update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n\n")
	for _, paragraph := range got {
		if !slices.Contains(want, paragraph) {
			t.Errorf("%s lacks\n%s", file, paragraph)
		}
	}
	for _, paragraph := range want {
		if !slices.Contains(got, paragraph) {
			t.Errorf("%s has\n%s\nwhich is not told", file, paragraph)
		}
	}
}

// withoutRoot writes paths as they are on the host itself.
func withoutRoot(text string, h probes.Host) string { return strings.ReplaceAll(text, h.Root+"/", "/") }

// Text is an Observation in one line.
func Text(o probes.Observation) string {
	level := o.Level.String()
	if o.Hysteresis {
		level += " (hysteresis)"
	}
	return fmt.Sprintf("%s %s %s: %s", o.Condition, level, o.Reason, o.Message)
}

// Edges garbles one file at a time of the well host, as the hosts named edges-*
// have it, and checks what the probe observes.
//
// A file in reasons makes the Observation Unknown for its reason. Any other file
// changes nothing, because it belongs to another condition or only adds to what
// the probe knows. understood lists exceptions, as edges-*/path: files that make
// sense with the edge in them, and the level and reason that they lead to.
func Edges(t *testing.T, observe func(probes.Host) probes.Observation, reasons map[string]string, understood map[string]probes.Observation) {
	t.Helper()
	base := observe(WellHost())
	if base.Level != probes.OK || base.Hysteresis {
		t.Errorf("the host without edges: %+v", base)
	}
	files := filesOf(t, WellHost())
	for path := range reasons {
		if !slices.Contains(files, path) {
			t.Errorf("the host without edges has no %s", path)
		}
	}
	for _, name := range hostNames(t) {
		if !IsEdge(name) {
			continue
		}
		for _, path := range files {
			t.Run(name+"/"+path, func(t *testing.T) {
				t.Parallel()
				h := wellButFor(t, HostNamed(name), path)
				o := observe(h)
				want, isUnderstood := understood[name+"/"+path]
				switch reason := reasons[path]; {
				case isUnderstood:
					Check(t, o, want.Level, want.Reason, "")
				case reason != "":
					checkGarbled(t, h, o, path, reason)
				case !reflect.DeepEqual(o, base):
					t.Errorf("got %+v, want %+v as without the edge", o, base)
				}
			})
		}
	}
}

func checkGarbled(t *testing.T, h probes.Host, o probes.Observation, path, reason string) {
	t.Helper()
	Check(t, o, probes.Unknown, reason, filepath.Base(path))
	if o.Severity != 0 || o.Hysteresis {
		t.Errorf("Unknown says no more than that: %+v", o)
	}
	if text := withoutRoot(o.Message, h); strings.Contains(text, "testdata") {
		t.Errorf("the message names a path of the test: %s", text)
	}
}

// wellButFor is a copy of the well host, with one file of another.
func wellButFor(t *testing.T, from probes.Host, path string) probes.Host {
	t.Helper()
	h := copyOf(t, WellHost())
	text, err := os.ReadFile(filepath.Join(from.Root, path))
	if err != nil {
		t.Fatal(err)
	}
	Write(t, h, path, string(text))
	return h
}

func filesOf(t *testing.T, h probes.Host) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(h.Root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
