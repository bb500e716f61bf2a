package pressure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// wakeStalledPercent is what the triggers of most tests wait for.
const wakeStalledPercent = 7.5

// running runs a trigger until the test ends or stop is called, which waits
// until Run has come back.
func running(t testing.TB, trigger *Trigger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		trigger.Run(ctx)
	}()
	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("Run does not end with its context")
		}
	}
	t.Cleanup(stop)
	return stop
}

func (t *Trigger) woken() bool {
	select {
	case <-t.Wake():
		return true
	default:
		return false
	}
}

// hasSysResource says whether this process may have short windows.
func hasSysResource(t testing.TB) bool {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

func TestTriggerOnThisHost(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"memory", "io", "cpu"} {
		armed, window, err := arm("/proc/pressure/"+resource, wakeStalledPercent)
		if err != nil {
			if known := regexp.MustCompile(`^(opening|writing) .*/pressure/.*(no such file|read-only|permission|not permitted)`); !known.MatchString(err.Error()) {
				t.Errorf("%s: %v", resource, err)
			}
			continue
		}
		unix.Close(armed) //nolint:errcheck // disarms
		if isShort := window == time.Second; isShort != hasSysResource(t) {
			t.Errorf("%s: a window of %v", resource, window)
		}
	}
}

// One second of work on more tasks than there are processors makes tasks wait
// for one, and the kernel says so.
func TestTriggerIsFiredByTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of all processors")
	}
	trigger := NewTrigger(probes.Host{Proc: "/proc"}, "cpu", 0.1)
	if armed, _, err := arm("/proc/pressure/cpu", 0.1); err != nil {
		t.Skipf("no trigger in the kernel: %v", err)
	} else {
		unix.Close(armed) //nolint:errcheck // disarms
	}
	running(t, trigger)
	busy, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for range 2 * runtime.NumCPU() {
		go func() {
			runtime.LockOSThread()
			for busy.Err() == nil {
				unix.Getpid()
			}
		}()
	}
	begin := time.Now()
	select {
	case <-trigger.Wake():
		t.Logf("woken after %v", time.Since(begin))
	case <-busy.Done():
		t.Error("not woken")
	}
}

func totals(some, full int) string {
	return fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", some, full)
}

// withPressure is the healthy host with a pressure file.
func withPressure(t testing.TB, text string) probes.Host {
	t.Helper()
	h := probetest.CopyOfHealthy(t)
	if err := os.Mkdir(filepath.Join(h.Proc, "pressure"), 0o700); err != nil {
		t.Fatal(err)
	}
	probetest.Write(t, h, "proc/pressure/memory", text)
	return h
}

func TestTriggerReadsTotalsWhereTheKernelDoesNotWatch(t *testing.T) {
	t.Parallel()
	h := withPressure(t, totals(1_000_000, 0))
	synctest.Test(t, func(t *testing.T) {
		trigger := NewTrigger(h, "memory", 10)
		running(t, trigger)
		next := func(text string) bool {
			probetest.Write(t, h, "proc/pressure/memory", text)
			time.Sleep(totalsEvery)
			synctest.Wait()
			woken := trigger.woken()
			if trigger.woken() {
				t.Error("woken twice at once")
			}
			return woken
		}
		time.Sleep(totalsEvery / 2) // between two of its reads from here on
		synctest.Wait()
		for i, step := range []struct {
			text string
			want bool
		}{
			{totals(1_000_000, 0), false},
			{totals(1_049_999, 0), false}, // a little less than a tenth of 500 ms
			{totals(1_099_999, 0), true},
			{totals(1_099_999, 0), false}, // one jump, one wake-up
			{totals(1_099_999, 400_000), false},
			{totals(9_000_000, 400_000), true},
			{totals(100, 100), false}, // a counter that starts again
			{totals(60_000, 100), true},
			{"garbled", false},
			{totals(1_000_000, 100), false}, // nothing to compare with
			{totals(1_060_000, 100), true},
		} {
			if got := next(step.text); got != step.want {
				t.Errorf("step %d: woken %t", i, got)
			}
		}
		// Ten jumps that nobody takes are one wake-up.
		for i := range 10 {
			probetest.Write(t, h, "proc/pressure/memory", totals(2_000_000+i*1_000_000, 100))
			time.Sleep(totalsEvery)
		}
		synctest.Wait()
		if !trigger.woken() || trigger.woken() {
			t.Error("not woken just once")
		}
	})
}

// A tree that is not procfs is read only: a trigger written to it would stay
// there as text.
func TestTriggerIsNotWrittenToAnOrdinaryFile(t *testing.T) {
	t.Parallel()
	h := withPressure(t, somePressure)
	path := filepath.Join(h.Proc, "pressure/memory")
	if _, _, err := arm(path, wakeStalledPercent); err == nil || err.Error() != path+" does not lie on procfs" {
		t.Errorf("armed: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != somePressure {
		t.Errorf("%q, %v", text, err)
	}
}

func TestTriggerWithoutPressure(t *testing.T) {
	t.Parallel()
	for _, h := range []probes.Host{probetest.Healthy(), withPressure(t, "some total=1\n")} {
		NewTrigger(h, "memory", wakeStalledPercent).Run(t.Context()) // comes back though the context does not end
	}
}

// socketpair returns two connected sockets.
func socketpair(t *testing.T) [2]int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unix.Close(pair[0]) //nolint:errcheck // a test
		unix.Close(pair[1]) //nolint:errcheck // a test
	})
	return pair
}

func TestWaitForAnEvent(t *testing.T) {
	t.Parallel()
	pair := socketpair(t)
	// Data out of band makes POLLPRI, as a trigger does.
	urgent := func() {
		if err := unix.Sendto(pair[1], []byte("!"), unix.MSG_OOB, nil); err != nil {
			t.Skipf("no data out of band here: %v", err)
		}
	}
	urgent()
	ctx, cancel := context.WithCancel(t.Context())
	fired := 0
	err := waitFor(ctx, pair[0], func() {
		if _, _, err := unix.Recvfrom(pair[0], make([]byte, 1), unix.MSG_OOB); err != nil {
			t.Error(err)
		}
		if fired++; fired < 3 {
			urgent()
		} else {
			cancel()
		}
	})
	if err != context.Canceled || fired != 3 { //nolint:errorlint // exactly this one
		t.Errorf("fired %d times, %v", fired, err)
	}
}

func TestWaitForATriggerThatIsGone(t *testing.T) {
	t.Parallel()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	unix.Close(ends[0])       //nolint:errcheck // the other end has POLLERR from here on
	defer unix.Close(ends[1]) //nolint:errcheck // a test
	for name, armed := range map[string]int{"error": ends[1], "no such file": 1 << 20} {
		err := waitFor(t.Context(), armed, func() { t.Error("woken by nothing") })
		if err == nil || err.Error() != "the kernel dropped the trigger" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	pair := socketpair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 2 { // the second time, it has ended before
		if err := waitFor(ctx, pair[0], func() { t.Error("woken by nothing") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
}

// openTriggers counts the files that triggers leave open if they leak.
func openTriggers(t testing.TB) (count int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		if strings.Contains(target, "/pressure/") || strings.Contains(target, "pipe:") {
			count++
		}
	}
	return count
}

func TestTriggerLeavesNothingBehind(t *testing.T) { // alone, because it counts what is open
	h := probes.Host{Proc: "/proc"}
	stop := running(t, NewTrigger(h, "memory", wakeStalledPercent)) // what Go itself opens is open from here on
	stop()
	files, goroutines := openTriggers(t), runtime.NumGoroutine()
	for range 50 {
		trigger := NewTrigger(h, "memory", wakeStalledPercent)
		brief, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
		trigger.Run(brief)
		stop()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		trigger.Run(over) // comes back at once
	}
	if now := openTriggers(t); now > files {
		t.Errorf("%d files were open, %d are", files, now)
	}
	if now := runtime.NumGoroutine(); now > goroutines+5 {
		t.Errorf("%d goroutines ran, %d do", goroutines, now)
	}
}
