// Package ballast takes memory of this host, for programs that make it scarce.
package ballast

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Memory is what /proc/meminfo says of this host, in bytes.
type Memory struct{ Total, Available uint64 }

// ReadMemory reads this host's memory.
func ReadMemory() (Memory, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return Memory{}, fmt.Errorf("read this host's memory: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return Memory{}, fmt.Errorf("read this host's memory: %w", err)
	}
	if info.MemTotalBytes == nil || info.MemAvailableBytes == nil {
		return Memory{}, errors.New("/proc/meminfo of this host lacks MemTotal or MemAvailable")
	}
	return Memory{*info.MemTotalBytes, *info.MemAvailableBytes}, nil
}

// Take maps anonymous memory and writes to every page of it, before which the
// kernel gives none. Give gives it back.
func Take(size int) ([]byte, error) {
	pages, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("take %d bytes of memory: %w", size, err)
	}
	for i := 0; i < len(pages); i += os.Getpagesize() {
		pages[i] = 1
	}
	return pages, nil
}

// Give gives back what was taken.
func Give(pages []byte) error {
	if err := unix.Munmap(pages); err != nil {
		return fmt.Errorf("give memory back: %w", err)
	}
	return nil
}

// OfferToKiller makes this process the first that the OOM killer ends: if memory
// runs out after all, no other program should pay.
func OfferToKiller() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600); err != nil {
		return fmt.Errorf("offer this process to the OOM killer: %w", err)
	}
	return nil
}
