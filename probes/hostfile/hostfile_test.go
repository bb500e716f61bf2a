package hostfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

func TestTextsAreWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       error
	}{
		{"empty", "", nil},
		{"one", "a b\n", nil},
		{"an empty one", "\n", nil},
		{"cut off", "a\nb", ErrCutOff},
		{"cut off within the first", "a", ErrCutOff},
	} {
		if err := CheckWhole(test.text); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	for _, test := range []struct {
		size int64
		want error
	}{{0, nil}, {mostBytes, nil}, {mostBytes + 1, ErrTooLong}, {4 * mostBytes, ErrTooLong}} {
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, test.size)); err != nil {
			t.Fatal(err)
		}
		text, err := Read(file)
		if !errors.Is(err, test.want) || err == nil && len(text) != int(test.size) {
			t.Errorf("%d bytes: %d, %v", test.size, len(text), err)
		}
		if _, _, err := ReadOptional(file, "Thing"); !errors.Is(err, test.want) {
			t.Errorf("%d bytes, optional: %v", test.size, err)
		}
	}
	if _, err := Read(file + "s"); !errors.Is(err, os.ErrNotExist) || err.Error() != "open "+file+"s: no such file or directory" {
		t.Errorf("a missing file: %v", err)
	}
}

// A file that stayed open with each sample would be seen only after weeks.
//
//nolint:paralleltest // it counts what the process has open
func TestReadClosesWhatItOpens(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := open()
	for range 100 {
		if _, err := Read(file); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err == nil {
			t.Fatal("a directory was read")
		}
	}
	if after := open(); after > before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

func TestReadOptional(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, found, err := ReadOptional(file, "Thing"); text != "text\n" || !found || err != nil {
		t.Errorf("a file: %q, %t, %v", text, found, err)
	}
	if text, found, err := ReadOptional(filepath.Join(dir, "missing"), "Thing"); text != "" || found || err != nil {
		t.Errorf("a missing file: %q, %t, %v", text, found, err)
	}
	_, found, err := ReadOptional(dir, "Thing")
	if found || err == nil {
		t.Fatalf("a directory: %t, %v", found, err)
	}
	if o := probes.UnknownBecause(probes.MemoryPressure, err); o.Reason != "ThingUnreadable" || !strings.Contains(o.Message, dir) {
		t.Errorf("a directory: %+v", o)
	}
}

func TestExcerptIsShortAndQuoted(t *testing.T) {
	t.Parallel()
	if got, want := Excerpt("a\n"+strings.Repeat("x", 100)), `"a\n`+strings.Repeat("x", 38)+`"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
