package disk

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// TestHeadroomIsTheLeastOfAllPaths: at 2 GiB and 100,000 inodes a second, or a
// sixteenth of the whole where that is less, to the thresholds of someDisk.
func TestHeadroomIsTheLeastOfAllPaths(t *testing.T) {
	t.Parallel()
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	const a, b = "/a", "/b"
	roomy := pathSample{fileSystem: fileSystem{"", 1, 50 * gib, 100 * gib, 0, 0}}                // 20 s
	narrow := pathSample{fileSystem: fileSystem{"", 2, 14 * gib, 100 * gib, 0, 0}}               // 2 s
	fewFiles := pathSample{fileSystem: fileSystem{"", 3, 90 * gib, 100 * gib, 200_000, 2e6}}     // 1 s
	small := pathSample{fileSystem: fileSystem{"", 7, 6 * gib, 10 * gib, 0, 0}}                  // 8 s
	low := pathSample{fileSystem: fileSystem{"", 4, 9 * gib, 100 * gib, 0, 0}}                   // none: Degraded
	atIt := pathSample{fileSystem: fileSystem{"", 5, 10 * gib, 100 * gib, 0, 0}}                 // no time at all
	meant := pathSample{fileSystem: narrow.fileSystem, readOnly: true}                           // none: nobody fills it
	image := pathSample{fileSystem: fileSystem{"", 6, 0, 0, 0, 0}}                               // none: no size
	sharedRoom := pathSample{fileSystem: fileSystem{"", 1, 50 * gib, 100 * gib, 0, 0}, kind: 17} // with roomy
	readOnlyFirst := sharedRoom
	readOnlyFirst.readOnly = true
	container := pathMounts{own: mount{point: a, fsType: "overlay", readOnly: true, upper: "/u"}}
	immutable := container
	immutable.own.superReadOnly = true
	for _, test := range []struct {
		name   string
		a, b   pathSample
		errOfB error
		mounts pathMounts // of a
		want   time.Duration
	}{
		{"the nearer path", roomy, narrow, nil, pathMounts{}, seconds(2)},
		{"the nearer path comes first", narrow, roomy, nil, pathMounts{}, seconds(2)},
		{"inodes", roomy, fewFiles, nil, pathMounts{}, seconds(1)},
		{"a small one", roomy, small, nil, pathMounts{}, seconds(8)},
		{"at the threshold", roomy, atIt, nil, pathMounts{}, 1},
		{"Degraded", roomy, low, nil, pathMounts{}, 0},
		{"read-only as it is meant", roomy, meant, nil, pathMounts{}, seconds(20)},
		{"all read-only", meant, meant, nil, pathMounts{}, 0},
		{"no size", roomy, image, nil, pathMounts{}, seconds(20)},
		{"unreadable", roomy, narrow, syscall.EACCES, pathMounts{}, seconds(20)},
		{"absent", roomy, narrow, syscall.ENOENT, pathMounts{}, seconds(20)},
		{"read-only and writable mounts of one device", readOnlyFirst, sharedRoom, nil, pathMounts{}, seconds(20)},
		{"the read-only root of a container", meant, roomy, nil, container, seconds(2)},
		{"an image that is read-only", meant, roomy, nil, immutable, seconds(20)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := New(nowhere, []string{a, b}, someDisk)
			d.samplePath = func(_, path string) (pathSample, error) {
				if path == a {
					return test.a, nil
				}
				return test.b, test.errOfB
			}
			d.mounts.read = func([]wantedMount) []pathMounts { return []pathMounts{test.mounts, {}} }
			if o := d.Observe(t.Context()); o.Headroom != test.want {
				t.Errorf("%s, want %s: %+v", o.Headroom, test.want, o)
			}
		})
	}
}

// TestHeadroomWithoutThresholds: what cannot make the host Degraded does not count.
func TestHeadroomWithoutThresholds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		t    Thresholds
		want time.Duration
	}{
		"space":  {Thresholds{AvailablePercent: 10}, 20 * time.Second},
		"inodes": {Thresholds{InodesPercent: 5}, 7200 * time.Millisecond},
		"none":   {Thresholds{}, 0},
	} {
		d := New(nowhere, []string{"/"}, test.t)
		d.samplePath = func(string, string) (pathSample, error) { return pathSample{fileSystem: half("")}, nil }
		if o := d.Observe(t.Context()); o.Headroom != test.want {
			t.Errorf("%s: %s, want %s", name, o.Headroom, test.want)
		}
	}
}

// TestHeadroomFollowsWhatWasSeen: a rate counts that was faster than the plausible one,
// until the file system is resized or is another one.
func TestHeadroomFollowsWhatWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := pathSample{fileSystem: fileSystem{"", 1, 1000 * gib, 1000 * gib, 1e8, 1e8}}
		d := New(nowhere, []string{"/"}, someDisk)
		d.samplePath = func(string, string) (pathSample, error) { return now, nil }
		for _, step := range []struct {
			name   string
			change func()
			want   time.Duration
		}{
			{"a plausible rate", func() {}, 474 * time.Second},
			{"10 GiB in a second", func() { now.available -= 10 * gib }, 93800 * time.Millisecond},
			{"slower", func() { now.available -= 1 * gib }, 93700 * time.Millisecond},
			{"grown", func() { now.size *= 2 }, (989 - 52) * time.Second / 2},
			{"shrunk: no rate", func() { now.size /= 2; now.available -= 80 * gib }, (909 - 52) * time.Second / 2},
			{"10 GiB in a second again", func() { now.available -= 10 * gib }, 84700 * time.Millisecond},
			{"another device", func() { now.device = 2; now.available -= 80 * gib }, (819 - 52) * time.Second / 2},
			{"a million inodes in a second", func() { now.inodesFree -= 1e6 }, 97 * time.Second},
			{"the inodes are resized", func() { now.inodesTotal, now.inodesFree = now.inodesTotal/2, now.inodesFree/2 }, (819 - 52) * time.Second / 2},
		} {
			step.change()
			o := observeBriefly(t, d)
			// The fastest rate fades: half of it in ten minutes.
			if o.Level != probes.OK || o.Headroom < step.want || o.Headroom > step.want*102/100 {
				t.Errorf("%s: %s, want %s: %+v", step.name, o.Headroom, step.want, o)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestHeadroomOfAnUnreadablePathIsForgotten: nobody knows what it would be by now.
func TestHeadroomOfAnUnreadablePathIsForgotten(t *testing.T) {
	t.Parallel()
	var err error
	d := New(nowhere, []string{"/", "/mnt"}, someDisk)
	d.samplePath = func(_, path string) (pathSample, error) {
		if path == "/" {
			return pathSample{fileSystem: half("")}, nil
		}
		return pathSample{fileSystem: fileSystem{"", 2, 16 * gib, 100 * gib, 0, 0}}, err
	}
	if o := d.Observe(t.Context()); o.Headroom != 3*time.Second {
		t.Errorf("readable: %+v", o)
	}
	err = syscall.ELOOP
	if o := d.Observe(t.Context()); o.Level != probes.OK || o.Headroom != 7200*time.Millisecond {
		t.Errorf("unreadable: %+v", o)
	}
}
