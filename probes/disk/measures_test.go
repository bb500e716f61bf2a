package disk

import (
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// Measures are told of each file system once, and of nothing that is not known.
func TestMeasures(t *testing.T) {
	paths := []string{"/", "/same", "/missing"}
	d := fakeDisk(paths, func(path string) (fileSystem, error) {
		if path == "/missing" {
			return fileSystem{}, &fs.PathError{Op: "stat", Path: path, Err: syscall.ENOENT}
		}
		return fileSystem{device: 1, available: 30, size: 200, inodesFree: 9, inodesTotal: 100}, nil
	})
	d.thresholds = Thresholds{AvailablePercent: 10, InodesPercent: 5, BlockedAfter: 30 * time.Second, ClearFactor: 1.5}
	probetest.Measures(t, d) // no sample yet
	probetest.Observe(t, d)
	probetest.Measures(t, d,
		probes.Measure{Name: "available", Path: "/", Unit: probes.Bytes, Value: 30, Degraded: 20, Clear: 30},
		probes.Measure{Name: "size", Path: "/", Unit: probes.Bytes, Value: 200},
		probes.Measure{Name: "free_inodes", Path: "/", Unit: probes.Items, Value: 9, Degraded: 5, Clear: 7.5},
		probes.Measure{Name: "inodes", Path: "/", Unit: probes.Items, Value: 100})
}

// A path that does not answer, and writes, are told as times.
func TestMeasuresOfTimes(t *testing.T) {
	d := New(nowhere, nil, Thresholds{BlockedAfter: 30 * time.Second, ClearFactor: 2})
	d.newest = sample{
		paths: []pathState{{name: "/mnt", silence: 12 * time.Second}},
		writes: []writeSample{
			{Write: Write{Directory: "/data", Slow: 2 * time.Second}, writeAnswer: writeAnswer{took: time.Second / 4}, slowFor: 5 * time.Second},
			{Write: Write{Directory: "/stuck"}, silence: 3 * time.Second},
			{Write: Write{Directory: "/denied"}, writeAnswer: writeAnswer{err: fs.ErrPermission}},
		},
	}
	probetest.Measures(t, d,
		probes.Measure{Name: "no_answer", Path: "/mnt", Unit: probes.Seconds, Value: 12, Degraded: 30},
		probes.Measure{Name: "write", Path: "/data", Unit: probes.Seconds, Value: 0.25, Degraded: 2, Clear: 1},
		probes.Measure{Name: "writes_slow", Path: "/data", Unit: probes.Seconds, Value: 5, Degraded: 60},
		probes.Measure{Name: "write_no_answer", Path: "/stuck", Unit: probes.Seconds, Value: 3, Degraded: 30})
}
