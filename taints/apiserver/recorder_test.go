package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/taintlet/taintlet/taints"
)

// wire is the way to an API server, which a test cuts. What a real one does with
// Events is for test/integration.
type wire struct {
	mu      sync.Mutex
	err     error // of each try; nil: the Event arrives
	hangs   bool
	crowd   time.Duration
	isLate  bool
	tries   []time.Time
	arrived []*corev1.Event
	log     strings.Builder // of the Recorder
}

func (w *wire) create(ctx context.Context, event *corev1.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries = append(w.tries, time.Now())
	if w.hangs {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return ctx.Err()
	}
	if w.err == nil {
		w.arrived = append(w.arrived, event)
	}
	return w.err
}

func (w *wire) set(err error, hangs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.hangs = err, hangs
}

// seen returns when it was tried, and the messages of what arrived.
func (w *wire) seen() (tries []time.Time, messages []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range w.arrived {
		messages = append(messages, event.Message)
	}
	return slices.Clone(w.tries), messages
}

// recording runs a Recorder of a wire in synthetic time.
func recording(t *testing.T, test func(t *testing.T, r *Recorder, w *wire, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		client := &Client{name: "host"}
		r := newRecorder(client.event, w.create, func() time.Duration { return w.crowd }, func() bool { return w.isLate }, slog.New(slog.NewTextHandler(&w.log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.run(ctx)
		}()
		stop := func() {
			cancel()
			<-ended
		}
		defer stop()
		test(t, r, w, stop)
	})
}

func about() *taints.Node { return &taints.Node{Name: "host", UID: "uid"} }

func refusal(code int32) error {
	return explain("create", "events", "default", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: "refused"}})
}

// kubectl describe finds an Event by the Node's name and UID; the admission policy
// wants the source.
func TestEventIsAboutTheNodeAndOfTaintlet(t *testing.T) {
	recording(t, func(t *testing.T, r *Recorder, w *wire, _ func()) {
		r.Event(about(), corev1.EventTypeWarning, "TaintContested", strings.Repeat("x", 3000))
		synctest.Wait()
		if len(w.arrived) != 1 {
			t.Fatalf("%d Events", len(w.arrived))
		}
		got, now := w.arrived[0], metav1.Now()
		want := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("host.%x", now.UnixNano()), Namespace: "default"},
			InvolvedObject: corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "host", UID: "uid"},
			Reason:         "TaintContested", Message: taints.Message(strings.Repeat("x", 3000)), Type: "Warning",
			Source:              corev1.EventSource{Component: "taintlet", Host: "host"},
			ReportingController: "taintlet", ReportingInstance: "host",
			FirstTimestamp: now, LastTimestamp: now, Count: 1,
		}
		if got.String() != want.String() {
			t.Errorf("Event\n%v, want\n%v", got, want)
		}
	})
}

func TestEventNameIsValidForEachNode(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for node, want := range map[string]string{
		"host":                   "host.18fae27693b40000",
		strings.Repeat("a", 253): strings.Repeat("a", 236) + ".18fae27693b40000",
		strings.Repeat("a", 234) + "-." + strings.Repeat("b", 17): strings.Repeat("a", 234) + ".18fae27693b40000",
	} {
		if got := eventName(node, at); got != want {
			t.Errorf("%s\n%s, want\n%s", node, got, want)
		}
	}
}

// Whatever becomes of an API server, an Event keeps nobody waiting. While it does not
// answer each Event is tried for some minutes, one after the other.
func TestEventsWaitForTheAPIServerAndNobodyForThem(t *testing.T) {
	recording(t, func(t *testing.T, r *Recorder, w *wire, _ func()) {
		w.set(nil, true)
		begin := time.Now()
		var want []string
		for i := range 2 * maxQueued {
			if i < eventBurst {
				want = append(want, fmt.Sprint(i))
			}
			r.Event(about(), corev1.EventTypeNormal, fmt.Sprint("Reason", i/reasonBurst), fmt.Sprint(i))
		}
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("Event took %s", waited)
		}
		time.Sleep(50 * time.Second)
		if tries, _ := w.seen(); len(tries) < 2 || len(tries) > 3 {
			t.Errorf("%d tries in 50 s of 20 s each", len(tries))
		}
		w.set(nil, false)
		time.Sleep(time.Minute)
		if _, messages := w.seen(); !slices.Equal(messages, want) {
			t.Errorf("arrived: %v", messages)
		}
	})
}

func TestAnEventIsTriedUntilItIsAnswered(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		err   error
		tries int
	}{
		"no connection":     {refused, eventTries},
		"overloaded":        {refusal(http.StatusTooManyRequests), eventTries},
		"without its etcd":  {refusal(http.StatusInternalServerError), eventTries},
		"refused by policy": {refusal(http.StatusForbidden), 1},
		"invalid":           {refusal(http.StatusUnprocessableEntity), 1},
		"arrived before":    {explain("create", "events", "default", apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "name")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			recording(t, func(t *testing.T, r *Recorder, w *wire, _ func()) {
				w.set(c.err, false)
				r.Event(about(), corev1.EventTypeNormal, "Paused", "first")
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if tries, _ := w.seen(); len(tries) != c.tries || len(tries) > 1 && tries[len(tries)-1].Sub(tries[0]) > eventTries*2*eventPause {
					t.Errorf("tried at %v", tries)
				}
				if isQuiet := w.log.Len() == 0; isQuiet != (name == "arrived before") {
					t.Errorf("log:\n%s", &w.log)
				}
				w.set(nil, false) // and then the next one
				r.Event(about(), corev1.EventTypeNormal, "Paused", "second")
				synctest.Wait()
				if _, messages := w.seen(); !slices.Equal(messages, []string{"second"}) {
					t.Errorf("arrived: %v", messages)
				}
			})
		})
	}
}

// In a fleet that falls sick, Events come after the taints and not in the same moment. What an
// agent has to tell goes together. An agent that falls sick alone tells of it at once.
func TestEventsOfAFleetComeAfterItsTaints(t *testing.T) {
	for name, c := range map[string]struct {
		isLate          bool
		earliest, until time.Duration
	}{
		"alone":        {false, Slow, Slow},
		"with a fleet": {true, Slow + time.Minute, Slow + 2*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			recording(t, func(t *testing.T, r *Recorder, w *wire, _ func()) {
				w.crowd, w.isLate = time.Minute, c.isLate
				begin := time.Now()
				for _, message := range []string{"first", "second"} {
					r.Event(about(), corev1.EventTypeNormal, "Paused", message)
				}
				time.Sleep(3 * time.Minute)
				tries, messages := w.seen()
				isEarlyOrLate := func(at time.Time) bool { return at.Sub(begin) < c.earliest || at.Sub(begin) > c.until }
				if !slices.Equal(messages, []string{"first", "second"}) || slices.ContainsFunc(tries, isEarlyOrLate) {
					t.Errorf("%v arrived of tries at %v, begun at %s", messages, tries, begin)
				}
			})
		})
	}
}

// A patch is slow while it waits, and for a while after.
func TestPatchesAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lateness
		check := func(when string, want bool) {
			t.Helper()
			if got := l.isLate(); got != want {
				t.Errorf("%s: %t", when, got)
			}
		}
		check("at first", false)
		end := l.begin()
		time.Sleep(Slow / 2)
		check("soon", false)
		end()
		time.Sleep(Slow)
		check("after a quick one", false)
		end = l.begin()
		time.Sleep(Slow)
		check("while one waits", true)
		end()
		time.Sleep(lateFor - 1)
		check("after a slow one", true)
		time.Sleep(time.Nanosecond)
		check("a while later", false)
	})
}

// The bounds are those of client-go's recorder, or below: 25 of a type, then one in
// 5 minutes, and 10 of one reason.
func TestEventsAreBounded(t *testing.T) {
	recording(t, func(t *testing.T, r *Recorder, w *wire, _ func()) {
		arrive := func() int {
			before, _ := w.seen()
			for i := range 40 {
				r.Event(about(), corev1.EventTypeWarning, fmt.Sprint("Reason", i%8), "x")
				synctest.Wait()
			}
			after, _ := w.seen()
			return len(after) - len(before)
		}
		if got := arrive(); got != eventBurst {
			t.Errorf("%d Events at once", got)
		}
		time.Sleep(eventEvery)
		if got := arrive(); got != 1 {
			t.Errorf("%d Events after 5 minutes", got)
		}
		for range 20 {
			r.Event(about(), corev1.EventTypeNormal, "Resumed", "x")
		}
		synctest.Wait()
		if _, messages := w.seen(); len(messages) != eventBurst+1+reasonBurst {
			t.Errorf("%d Events, and 10 of another type and one reason", len(messages))
		}
	})
}

// What was told last is written when the agent ends, and a dead API server does not
// hold up the end.
func TestTheEndOfTheRecorder(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		before, after error // until the end, and from then on
		hangs         bool  // from then on
		arrive        int
		within        time.Duration
	}{
		"well":                   {nil, nil, false, 3, 0},
		"back in time":           {refused, nil, false, 3, 0},
		"still away":             {refused, refused, false, 0, 0},
		"refuses":                {refused, refusal(http.StatusForbidden), false, 0, 0},
		"hangs from then on":     {refused, nil, true, 0, flushTimeout},
		"hangs, and nobody told": {nil, nil, true, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			recording(t, func(t *testing.T, r *Recorder, w *wire, stop func()) {
				w.set(c.before, false)
				for i := range 3 {
					r.Event(about(), corev1.EventTypeNormal, "Paused", fmt.Sprint(i))
				}
				synctest.Wait()
				w.set(c.after, c.hangs)
				begin := time.Now()
				stop()
				_, messages := w.seen()
				if took := time.Since(begin); took != c.within || len(messages) != c.arrive {
					t.Errorf("ended after %s, want %s; arrived: %v", took, c.within, messages)
				}
			})
		})
	}
}
