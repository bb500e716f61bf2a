package process

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// HostMemory is what /proc/meminfo says of this host, in bytes.
type HostMemory struct{ Total, Available uint64 }

// ReadHostMemory reads this host's memory.
func ReadHostMemory() (HostMemory, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return HostMemory{}, fmt.Errorf("read this host's memory: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return HostMemory{}, fmt.Errorf("read this host's memory: %w", err)
	}
	if info.MemTotalBytes == nil || info.MemAvailableBytes == nil {
		return HostMemory{}, errors.New("/proc/meminfo of this host lacks MemTotal or MemAvailable")
	}
	return HostMemory{*info.MemTotalBytes, *info.MemAvailableBytes}, nil
}

// TakeMemory maps anonymous memory and writes to every page of it, before which the
// kernel gives none. GiveMemory gives it back.
func TakeMemory(size int) ([]byte, error) {
	pages, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("take %d bytes of memory: %w", size, err)
	}
	for i := 0; i < len(pages); i += os.Getpagesize() {
		pages[i] = 1
	}
	return pages, nil
}

// GiveMemory gives back what was taken.
func GiveMemory(pages []byte) error {
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
