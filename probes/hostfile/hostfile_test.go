package hostfile

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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

func TestParseOptional(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if value, found, err := ParseOptional(file, strconv.Atoi); value != 7 || !found || err != nil {
		t.Errorf("a file: %d, %t, %v", value, found, err)
	}
	if value, found, err := ParseOptional(filepath.Join(dir, "missing"), strconv.Atoi); value != 0 || found || err != nil {
		t.Errorf("a missing file: %d, %t, %v", value, found, err)
	}
	if _, found, err := ParseOptional(dir, strconv.Atoi); found || err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory: %t, %v", found, err)
	}
	garbled := func(string) (int, error) { return 7, ErrCutOff }
	if value, found, err := ParseOptional(file, garbled); value != 0 || found || !errors.Is(err, ErrCutOff) || !strings.HasPrefix(err.Error(), file) {
		t.Errorf("a garbled file: %d, %t, %v", value, found, err)
	}
}

func TestExcerptIsShortAndQuoted(t *testing.T) {
	t.Parallel()
	if got, want := Excerpt("a\n"+strings.Repeat("x", 100)), `"a\n`+strings.Repeat("x", 38)+`"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
