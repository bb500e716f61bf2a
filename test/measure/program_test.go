package measure

import (
	"context"
	"errors"
	"testing"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	failed := errors.New("what failed")
	for _, c := range []struct {
		ended, holds bool
		err          error
		want         int
	}{
		{false, true, nil, ExitOK},
		{false, false, nil, ExitFailed},
		{false, true, failed, ExitFailed},
		{true, true, failed, ExitInterrupted},
		{true, true, nil, ExitOK},
	} {
		ctx := t.Context()
		if c.ended {
			ctx = ended
		}
		if got := exitCode(ctx, "test", c.holds, c.err); got != c.want {
			t.Errorf("holds %t, %v: %d, want %d", c.holds, c.err, got, c.want)
		}
	}
}
