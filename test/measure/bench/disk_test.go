package bench

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	diskDir = "/var/lib/kubelet" // of the kubelet, on a file system of its own
	// diskPercent of that file system's space is the threshold of both.
	diskPercent = 50
	// diskGapPercent above it the approach ends, and below it the crossing.
	diskGapPercent = 5
	diskStep       = 4 * mebibyte
)

// disk is the load that fills the kubelet's file system. Space is allocated and
// not written (fallocate(2)): how fast the disk is has no part in it.
type disk struct {
	stage *stage
	file  *os.File
	size  int64
}

func (d *disk) approach(context.Context) (err error) {
	if d.file, err = os.Create(d.stage.kubelet.HostPath(diskDir + "/filler")); err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	return d.fillUntil(diskPercent+diskGapPercent, nil)
}

func (d *disk) cross(context.Context) (c crossing, err error) {
	err = d.fillUntil(diskPercent-diskGapPercent, func(percent float64) {
		if c.own == 0 && percent < diskPercent {
			c.own = now()
		}
	})
	c.kubelet, c.done = c.own, now()
	return c, err
}

// fillUntil takes space until less than the percentage is available, and tells
// of each sample.
func (d *disk) fillUntil(percent float64, sampled func(percent float64)) error {
	for {
		var usage unix.Statfs_t
		if err := unix.Fstatfs(int(d.file.Fd()), &usage); err != nil {
			return fmt.Errorf("read how full the disk is: %w", err)
		}
		available := 100 * float64(usage.Bavail) / float64(usage.Blocks)
		if sampled != nil {
			sampled(available)
		}
		if available < percent {
			return nil
		}
		if err := unix.Fallocate(int(d.file.Fd()), 0, d.size, diskStep); err != nil {
			return fmt.Errorf("fill the disk: %w", err)
		}
		d.size += diskStep
	}
}

func (d *disk) release() error {
	if d.file == nil {
		return nil
	}
	file := d.file
	d.file, d.size = nil, 0
	if err := errors.Join(os.Remove(file.Name()), file.Close()); err != nil {
		return fmt.Errorf("empty the disk: %w", err)
	}
	return nil
}
