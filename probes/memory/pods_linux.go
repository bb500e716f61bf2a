package memory

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/cgroup"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// newPods finds the limits that kubelets have set for the memory of all their pods together
// (--enforce-node-allocatable=pods).
func newPods(h probes.Host) *cgroup.Pods {
	return cgroup.NewPods(h.Sys, "memory", "memory.max", "memory.limit_in_bytes")
}

// readPods returns the limit that leaves the smallest share, of a host with that much
// memory.
func readPods(groups *cgroup.Pods, total uint64) (tightest allocatable, err error) {
	for _, path := range groups.Files(time.Now()) {
		a, err := readAllocatable(path)
		switch {
		case err != nil:
			return allocatable{}, err
		case a.limit == 0 || a.limit >= total:
		case tightest.limit == 0 || float64(a.available)/float64(a.limit) < float64(tightest.available)/float64(tightest.limit):
			tightest = a
		}
	}
	return tightest, nil
}

// readAllocatable reads a limit and what is left of it: zero where there is none.
//
// What is left is the limit less the working set, and that is the usage less
// inactive_file. The kubelet evicts pods by this amount, allocatableMemory.available
// (makeSignalObservations in pkg/kubelet/eviction/helpers.go,
// setMemoryStats in cadvisor's container/libcontainer/handler.go). Page cache that is
// active could be reclaimed, and is not counted as left, because the kubelet does not
// either.
func readAllocatable(path string) (allocatable, error) {
	usageName, cacheName := "memory.current", "inactive_file"
	if filepath.Base(path) == "memory.limit_in_bytes" {
		usageName, cacheName = "memory.usage_in_bytes", "total_inactive_file"
	}
	limit, found, err := hostfile.ParseOptional(path, "PodsMemory", "the memory of all pods", parseLimit)
	if !found || limit == noLimit {
		return allocatable{}, err
	}
	usage, err := hostfile.Parse(filepath.Join(filepath.Dir(path), usageName), "PodsMemory", "the memory of all pods", parseAmount)
	if err != nil {
		return allocatable{}, err
	}
	statPath := filepath.Join(filepath.Dir(path), "memory.stat")
	text, err := hostfile.Read(statPath)
	if err != nil {
		return allocatable{}, probes.Because("PodsMemoryUnreadable", "reading the page cache of all pods: %w", err)
	}
	cache, err := parseStat(text, cacheName)
	if err != nil {
		return allocatable{}, probes.Because("PodsMemoryGarbled", "reading the memory of all pods from %s: %w", statPath, err)
	}
	workingSet := usage - min(usage, cache)
	return allocatable{limit, limit - min(limit, workingSet)}, nil
}

// noLimit is the limit of a group that has none.
const noLimit = math.MaxUint64

// parseLimit returns a limit in bytes.
func parseLimit(text string) (uint64, error) {
	if text == "max\n" {
		return noLimit, nil
	}
	limit, err := parseAmount(text)
	if err == nil && limit == 0 {
		err = errors.New("a limit of 0 bytes cannot be")
	}
	return limit, err
}

// parseAmount returns the one number of bytes of a text with its newline.
func parseAmount(text string) (uint64, error) {
	digits, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return 0, hostfile.ErrCutOff
	}
	bytes, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not a number of bytes: %w", err)
	}
	return bytes, nil
}

// parseStat returns one value of memory.stat, whose lines are a name and a number.
func parseStat(text, name string) (uint64, error) {
	if err := hostfile.CheckWhole(text); err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut("\n"+text, "\n"+name+" ")
	if !found {
		return 0, fmt.Errorf("no line %s", name)
	}
	digits, _, _ := strings.Cut(rest, "\n")
	bytes, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number of bytes: %w", name, err)
	}
	return bytes, nil
}
