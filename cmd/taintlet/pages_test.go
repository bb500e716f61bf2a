package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

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

// The kernel drops what it can of the file of this program, and says which pages it has.
//
//nolint:paralleltest // it is the memory of this process
func TestProgramIsReadFromItsDisk(t *testing.T) {
	file, err := os.Open(ownProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped) //nolint:errcheck // nothing depends on it
	missing := func() int {
		in := make([]byte, (len(mapped)+os.Getpagesize()-1)/os.Getpagesize())
		if _, _, code := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(len(mapped)), uintptr(unsafe.Pointer(&in[0]))); code != 0 {
			t.Fatal(code)
		}
		return bytes.Count(in, []byte{0})
	}
	unix.Sync() // only clean pages are dropped
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if missing() == 0 {
		t.Skip("the file system of this program drops no pages, such as tmpfs")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	keepPages(ended, slog.New(slog.DiscardHandler))
	if n := missing(); n > 0 {
		t.Errorf("%d pages of the program are not in memory", n)
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
