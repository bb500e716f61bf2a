package probes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSoleCallDropsALateAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var call soleCall[string]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		call.start(func() string { time.Sleep(90 * time.Second); return "old" })
		if answer, ok := call.wait(ctx); ok {
			t.Fatalf("an answer before there can be one: %q", answer)
		}
		if out := call.outFor(); out != time.Second {
			t.Errorf("out for %v instead of 1 s", out)
		}
		time.Sleep(2 * time.Minute)
		call.start(func() string { return "new" })
		if answer, ok := call.wait(t.Context()); !ok || answer != "new" {
			t.Errorf("got %q, %t", answer, ok)
		}
	})
}

func TestSoleCallTakesAnAnswerThatComesWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var call soleCall[string]
		slow := func() string { time.Sleep(1500 * time.Millisecond); return "slow" }
		for round, want := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			call.start(slow)
			if answer, ok := call.wait(ctx); ok != want {
				t.Errorf("round %d: %q, %t", round, answer, ok)
			}
			cancel()
		}
	})
}
