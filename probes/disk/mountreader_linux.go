package disk

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/probes/hostfile"
)

// mountReader decides when mountinfo is read.
type mountReader struct {
	// read finds the mounts under the paths. It may hang.
	read func([]wantedMount) []pathMounts
	call hostfile.SoleCall[mountAnswer]

	at   time.Time     // of the last reading; zero: none yet
	took time.Duration // by the last reading
	// matter says that something changed of which the mounts tell more.
	matter bool
}

// mountAnswer is what one reading found.
type mountAnswer struct {
	found []pathMounts
	took  time.Duration
}

const (
	// mountsEvery is how often the mounts are read while nothing seems to have changed.
	// In between, the flags that every statfs(2) returns anyway show most changes. They do not show
	// that ext4 was shut down, nor what lies beneath an overlay.
	mountsEvery = 5 * time.Second
	// mountsSeldom is how often the mounts are read where that takes long: when all
	// of a long mountinfo has to be searched.
	mountsSeldom = 30 * time.Second
	// mountsShare is the part of the time that reading the mounts may take. 5 ms
	// make it seldom.
	mountsShare = 1000
)

// isDue says whether the mounts are to be read with this sample.
func (m *mountReader) isDue() bool {
	return m.matter || m.at.IsZero() || time.Since(m.at) >= min(max(m.took*mountsShare, mountsEvery), mountsSeldom)
}

// renew reads the mounts. ok is false where there is no answer. That of an earlier reading is
// dropped, because the paths may have other mounts now.
func (m *mountReader) renew(ctx context.Context, wanted []wantedMount) (found []pathMounts, ok bool) {
	isNew := m.call.Start(func() mountAnswer {
		begin := time.Now()
		found := m.read(wanted)
		return mountAnswer{found, time.Since(begin)}
	})
	if !isNew {
		return nil, false
	}
	answer, ok := m.call.Wait(ctx)
	if !ok {
		return nil, false
	}
	m.at, m.took, m.matter = time.Now(), answer.took, false
	return answer.found, true
}
