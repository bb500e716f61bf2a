package disk

import (
	"syscall"
	"testing"
	"time"
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
