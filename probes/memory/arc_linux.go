package memory

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// readEvictableARC returns what ZFS would give back of its cache (ARC), in
// bytes. It is 0 where there is no ZFS.
//
// MemAvailable leaves this cache out (openzfs/zfs#10255), so that a healthy file
// server would seem full. Under pressure the cache shrinks like the page cache,
// but not below c_min.
func readEvictableARC(h probes.Host) (evictable uint64, err error) {
	path := filepath.Join(h.Proc, "spl", "kstat", "zfs", "arcstats")
	evictable, _, err = hostfile.ParseOptional(path, "ARCStats", "the size of the ZFS cache", parseEvictableARC)
	return evictable, err
}

// parseEvictableARC returns size - c_min, or 0 if that is negative, from the text
// of arcstats. After two lines of header each line has name, type and value.
func parseEvictableARC(text string) (uint64, error) {
	if err := hostfile.CheckWhole(text); err != nil {
		return 0, err
	}
	size, err := kstat(text, "size")
	if err != nil {
		return 0, err
	}
	least, err := kstat(text, "c_min")
	if err != nil {
		return 0, err
	}
	return size - min(size, least), nil
}

// kstat returns one value of a table of the Solaris porting layer. Its type is 4,
// an unsigned number of 64 bits (KSTAT_DATA_UINT64).
func kstat(text, name string) (uint64, error) {
	_, rest, found := strings.Cut(text, "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(line)
	if !found || len(fields) != 2 || fields[0] != "4" {
		return 0, fmt.Errorf("no line %s with type 4 and a value", name)
	}
	value, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no number of bytes: %w", name, err)
	}
	return value, nil
}
