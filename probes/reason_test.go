package probes_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

func TestReasonOfAnErrorThatHasNone(t *testing.T) {
	t.Parallel()
	probetest.Check(t, probes.UnknownBecause(probes.MemoryPressure, errors.New("odd")), probes.Unknown, "ReadFailed", "odd")
	if err := probes.Because("X", "reading: %w", fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
}
