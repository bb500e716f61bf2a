package results

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
		ctx   context.Context
		holds bool
		err   error
		want  int
	}{
		{t.Context(), true, nil, ExitOK}, {t.Context(), false, nil, ExitFailed},
		{t.Context(), true, failed, ExitFailed}, {ended, true, failed, ExitInterrupted}, {ended, true, nil, ExitOK},
	} {
		if got := ExitCode(c.ctx, "test", c.holds, c.err); got != c.want {
			t.Errorf("holds %t, %v: %d, want %d", c.holds, c.err, got, c.want)
		}
	}
}
