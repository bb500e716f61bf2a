package hostfile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSoleCallDropsALateAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var call SoleCall[string]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		call.Start(func() string { time.Sleep(90 * time.Second); return "old" })
		if answer, ok := call.Wait(ctx); ok {
			t.Fatalf("an answer before there can be one: %q", answer)
		}
		if out := call.OutFor(); out != time.Second {
			t.Errorf("out for %v instead of 1 s", out)
		}
		time.Sleep(2 * time.Minute)
		call.Start(func() string { return "new" })
		if answer, ok := call.Wait(t.Context()); !ok || answer != "new" {
			t.Errorf("got %q, %t", answer, ok)
		}
	})
}

func TestSoleCallTakesAnAnswerThatComesWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var call SoleCall[string]
		slow := func() string { time.Sleep(1500 * time.Millisecond); return "slow" }
		for round, want := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			call.Start(slow)
			if answer, ok := call.Wait(ctx); ok != want {
				t.Errorf("round %d: %q, %t", round, answer, ok)
			}
			cancel()
		}
	})
}
