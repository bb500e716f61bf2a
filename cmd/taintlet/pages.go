package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// keepAfter is how long the agent runs before its pages are kept: its start needs more of
	// them than all that follows.
	keepAfter = 20 * time.Second
	// keepTogether is how much the kernel maps of a file with one fault (fault_around_bytes in
	// mm/memory.c). Each range that is kept apart costs the kernel a mapping.
	keepTogether = 64 << 10
	// keepFree is left of the limit.
	keepFree = 256 << 10
)

// keepPages locks the program's used pages in memory, from some time after its start. On a host
// without swap that runs out of memory, the kernel can take these pages from the agent, which then
// reads each of them again from a disk that every process waits for. Locking needs no privileges:
// each process may lock RLIMIT_MEMLOCK, by default 8 MiB since Linux 5.16. Before, it was 64 KiB,
// which is too little to help. docs/decisions.md shows the effect.
//
// First it reads all of the program from its disk. On a disk that hangs, the first use of a page that
// was never read would stop the whole agent, before it could report the disk.
func keepPages(ctx context.Context, log *slog.Logger) {
	if file, err := os.Open(ownProgram); err == nil {
		_, _ = io.Copy(io.Discard, file) // pages that cannot be read are read when they are used
		_ = file.Close()
	}
	code, err := ownCode()
	for _, r := range code {
		if !r.isText { // a constant may have been relocated
			continue
		}
		// Pages that are used from now on are mapped again.
		unix.Syscall(unix.SYS_MADVISE, r.begin, r.end-r.begin, unix.MADV_DONTNEED) //nolint:errcheck // they are not told apart then
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(keepAfter):
	}
	var limit unix.Rlimit
	if err == nil {
		err = unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit)
	}
	if err == nil && limit.Cur > keepFree {
		kept, err := lockUsed(code, uintptr(min(limit.Cur-keepFree, 1<<30)))
		log.Debug("pages of the program are kept in memory", "kib", kept>>10, "error", err)
	}
}

const ownProgram = "/proc/self/exe"

// pages are a range of memory. isText: its bytes are those of the file.
type pages struct {
	begin, end uintptr
	isText     bool
}

// ownCode returns where the code of this program and its constants are mapped.
func ownCode() (all []pages, err error) {
	name, err := os.Readlink(ownProgram)
	if err != nil {
		return nil, err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer maps.Close() //nolint:errcheck // nothing was written
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var p pages
		var mode string
		_, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &p.begin, &p.end, &mode)
		if p.isText = strings.HasPrefix(mode, "r-x"); err == nil && strings.HasPrefix(mode, "r-") && strings.HasSuffix(lines.Text(), " "+name) {
			all = append(all, p)
		}
	}
	return all, lines.Err()
}

// lockUsed locks the parts of some ranges that are mapped, up to a number of bytes, and returns
// how many these are.
func lockUsed(ranges []pages, most uintptr) (locked uintptr, err error) {
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return 0, err
	}
	defer pagemap.Close() //nolint:errcheck // nothing was written
	page := uintptr(os.Getpagesize())
	for _, r := range ranges {
		for at := r.begin; at < r.end; at += keepTogether {
			size := min(keepTogether, r.end-at)
			entries := make([]byte, 8*(size/page))
			n, err := pagemap.ReadAt(entries, int64(8*(at/page)))
			if err != nil || locked+size > most {
				return locked, err
			}
			if !isMapped(entries[:n]) {
				continue
			}
			if _, _, code := unix.Syscall(unix.SYS_MLOCK, at, size, 0); code != 0 {
				return locked, code
			}
			locked += size
		}
	}
	return locked, nil
}

// isMapped says that one of the pages is, by its entry in pagemap
// (Documentation/admin-guide/mm/pagemap.rst): bit 63.
func isMapped(entries []byte) bool {
	for ; len(entries) >= 8; entries = entries[8:] {
		if binary.LittleEndian.Uint64(entries)>>63 == 1 {
			return true
		}
	}
	return false
}
