package memory

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes/probetest"
)

func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	small := allMemory
	small.AvailablePercent, small.AvailableBytes = 5, 8*gib
	withARC := ofHost(30)
	withARC.arc = 2 * gib
	probetest.Golden(t, *update,
		[]string{"MemorySufficient", "MemoryNearThreshold", "MemoryLow", "MemoryRunningOut", "MemoryStalled", "MemoryStalledFully"},
		allMemory.judged(ofHost(50), 0, 0, 0), allMemory.alone(withARC), allMemory.judged(ofHost(6.4), 3, 0, 0),
		allMemory.judged(ofHost(2.6), 31, 5, 0), small.alone(ofHost(6)), allMemory.judged(ofHost(12), 0, 0, 7500*time.Millisecond),
		allMemory.judged(ofHost(12), 31, 0, 0), allMemory.judged(ofHost(18), 12, 0, 0), allMemory.judged(ofHost(0.6), 90, 62, 0),
	)
}
