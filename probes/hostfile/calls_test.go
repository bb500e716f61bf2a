package hostfile

import (
	"context"
	"sync/atomic"
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
		if silent := call.Silence(); silent != time.Second {
			t.Errorf("silent for %v instead of 1 s", silent)
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

// sample starts a call and waits for its answer for a second.
func sample(t *testing.T, call *SoleCall[string], f func() string) (answer string, ok bool, waited time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	call.Start(f)
	answer, ok = call.WaitOnce(ctx)
	return answer, ok, time.Since(begin)
}

func TestWaitOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var call SoleCall[string]
		var calls atomic.Int64
		slow := func() string { calls.Add(1); time.Sleep(time.Minute); return "slow" }
		if _, ok, waited := sample(t, &call, slow); ok || waited != time.Second {
			t.Errorf("the first sample: %t after %v", ok, waited)
		}
		for range 10 {
			time.Sleep(time.Second)
			if _, ok, waited := sample(t, &call, slow); ok || waited != 0 {
				t.Errorf("a later sample: %t after %v", ok, waited)
			}
		}
		if calls.Load() != 1 || call.Silence() != 11*time.Second {
			t.Errorf("%d calls, silent for %v", calls.Load(), call.Silence())
		}
		if answer, ok := call.Poll(); ok {
			t.Errorf("%q before there can be an answer", answer)
		}
		time.Sleep(time.Minute)
		if answer, ok := call.Poll(); !ok || answer != "slow" {
			t.Errorf("%q, %t when there is an answer", answer, ok)
		}
		prompt := func() string { calls.Add(1); return "prompt" }
		if answer, ok, _ := sample(t, &call, prompt); !ok || answer != "prompt" || calls.Load() != 2 {
			t.Errorf("%q, %t after the end of the hang, %d calls", answer, ok, calls.Load())
		}
	})
}

// A call that comes back too late every time is as silent as one that never
// comes back; an answer in time ends the silence.
func TestSoleCallIsSilentWhileAnswersComeLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var call SoleCall[string]
		lasting := func(d time.Duration) func() string {
			return func() string { time.Sleep(d); return "" }
		}
		for range 3 {
			if _, ok, _ := sample(t, &call, lasting(1500*time.Millisecond)); ok {
				t.Error("an answer before there can be one")
			}
			time.Sleep(time.Second)
		}
		if silent := call.Silence(); silent != 6*time.Second {
			t.Errorf("silent for %v, want 6 s", silent)
		}
		if _, ok, _ := sample(t, &call, lasting(0)); !ok {
			t.Error("no answer")
		}
		sample(t, &call, lasting(time.Minute))
		if silent := call.Silence(); silent != time.Second {
			t.Errorf("silent for %v after an answer, want 1 s", silent)
		}
		time.Sleep(time.Hour) // lets the call end
	})
}
