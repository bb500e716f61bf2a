package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel says how much is locked.
//
//nolint:paralleltest // it is the memory of this process
func TestPagesInUseAreKept(t *testing.T) {
	code, err := ownCode()
	if err != nil || len(code) < 2 {
		t.Fatalf("%+v, %v", code, err)
	}
	t.Cleanup(func() { unix.Munlockall() }) //nolint:errcheck // nothing depends on it
	const most = 64 << 10                   // any process may lock as much
	if kept, err := lockUsed(code, most); err != nil || kept != most || kibLocked(t) != most>>10 {
		t.Errorf("%d bytes are kept, %v, and the kernel says %d KiB", kept, err, kibLocked(t))
	}
}

func kibLocked(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmLck:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
