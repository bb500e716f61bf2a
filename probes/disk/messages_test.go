package disk

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	thresholds := someDisk
	thresholds.BlockedAfter = 30 * time.Second
	judge := func(s sample) probes.Observation { return thresholds.judge(s).join() }
	silent := func(long time.Duration) sample {
		return answering(half("/")).and(pathState{name: "/mnt", silence: long})
	}
	mounted := func(fell, readOnly, superReadOnly bool) sample {
		return onMount(mountSample{mount: kubeletOn("ext4", readOnly, superReadOnly), fell: fell})
	}
	readOnlyImage := func() probes.Observation {
		s := mounted(false, true, true)
		s.paths[0].fileSystem = fileSystem{}
		return judge(s)
	}
	shutdown := kubeletOn("xfs", false, false)
	shutdown.shutdown = true
	wrote := func(w writeSample) probes.Observation {
		w.Directory, w.Slow = "/data", 5*time.Second
		return judge(sample{writes: []writeSample{w}})
	}
	answered := func(took time.Duration, err error) writeSample {
		return writeSample{writeAnswer: writeAnswer{took: took, err: err}}
	}
	slowly := func(took, since time.Duration) writeSample {
		w := answered(took, nil)
		w.slowFor = since
		return w
	}
	failed, readOnly, meant := answered(0, syscall.EIO), answered(0, syscall.EROFS), answered(0, syscall.EROFS)
	failed.failures, readOnly.failures, meant.meant = 2, 1, true
	emergency := kubeletOn("ext4", false, false)
	emergency.emergency = true
	probetest.Golden(t, *update,
		judge(answering(half("/"))), judge(answering(fileSystem{"/", 1, 12 * gib, 100 * gib, 0, 0})), judge(answering(half("/"), nearlyFull("/var/lib/kubelet"))),
		judge(answering(fileSystem{"/", 1, 90 * gib, 100 * gib, 90, 1000})), judge(answering(fileSystem{"/", 1, 90 * gib, 100 * gib, 60, 1000})), judge(answering(fewInodes("/var"))),
		judge(mounted(true, false, true)), judge(mounted(true, true, false)), judge(mounted(false, false, true)), readOnlyImage(),
		judge(onMount(mountSample{mount: shutdown})),
		judge(sample{}.and(pathState{name: "/srv", failures: 3, err: fmt.Errorf("statx: %w", syscall.EIO)})),
		judge(silent(42*time.Second)), judge(silent(5*time.Second)),
		judge(sample{}.and(pathState{name: "/srv", trouble: probes.Because("StatfsFailed", "looking at the file system of /srv: permission denied")})), judge(sample{}),
		wrote(answered(40*time.Millisecond, nil)), wrote(answered(4*time.Second, nil)),
		wrote(slowly(7*time.Second, 64*time.Second)), wrote(slowly(7*time.Second, 22*time.Second)), wrote(writeSample{silence: 12 * time.Second}), wrote(writeSample{silence: 42 * time.Second}),
		wrote(failed), wrote(readOnly), wrote(meant), wrote(answered(0, syscall.ENOSPC)), wrote(answered(0, syscall.EACCES)),
		judge(onMount(mountSample{mount: emergency})),
		judge(onMount(mountSample{fell: true})),
		judge(answering(half("/")).and(pathState{name: "/data", bare: true})),
		judge(answering(nearlyFull("/var/lib/kubelet")).and(pathState{name: "/srv", trouble: probes.Because("StatfsFailed", "looking at the file system of /srv: permission denied")})),
	)
}
