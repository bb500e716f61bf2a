package probetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// The hosts lie in probes/testdata; the tests of a condition run in its folder.
const shared = "../testdata"

// HostAt is the host whose root, with proc and sys below it, is a folder.
func HostAt(root string) probes.Host {
	return probes.Host{Root: root, Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
}

// Healthy is a small host that lacks nothing.
func Healthy() probes.Host { return HostAt(filepath.Join(shared, "healthy")) }

// HealthyText is a file of the healthy host.
func HealthyText(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Healthy().Root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// CopyOfHealthy is a copy of the healthy host that a test may break.
func CopyOfHealthy(t testing.TB) probes.Host {
	t.Helper()
	return copyOf(t, Healthy())
}

func copyOf(t testing.TB, h probes.Host) probes.Host {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(h.Root)); err != nil {
		t.Fatal(err)
	}
	return HostAt(root)
}

// With returns a copy of the healthy host whose file at path holds text.
func With(t testing.TB, path, text string) probes.Host {
	t.Helper()
	h := CopyOfHealthy(t)
	Write(t, h, path, text)
	return h
}

// Without returns a copy of the healthy host that lacks the file at path.
func Without(t testing.TB, path string) probes.Host {
	t.Helper()
	h := CopyOfHealthy(t)
	Remove(t, h, path)
	return h
}

// Write makes the host's file at path hold text.
func Write(t testing.TB, h probes.Host, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(h.Root, path)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Root, path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Remove removes the host's file at path.
func Remove(t testing.TB, h probes.Host, path string) {
	t.Helper()
	if err := os.Remove(filepath.Join(h.Root, path)); err != nil {
		t.Fatal(err)
	}
}
