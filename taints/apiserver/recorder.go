package apiserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// Of each type of Events, Normal and Warning, eventBurst are written at once and
	// then one in eventEvery; of one reason, reasonBurst at once.
	eventBurst  = 25
	reasonBurst = 10
	eventEvery  = 5 * time.Minute
	// maxQueued Events wait for the API server.
	maxQueued = 64
	// eventTries is how often one Event is tried, each time for eventTimeout and
	// eventPause apart on average. A busy API server lets a request wait for 15 s.
	eventTries   = 12
	eventTimeout = 20 * time.Second
	eventPause   = 10 * time.Second
	// flushTimeout is how long the end may take. A pod has 5 s.
	flushTimeout = 2 * time.Second
)

// Recorder writes Events about a Node in the background. It creates a new Event each time, and
// bounds their number.
type Recorder struct {
	event  func(node *taints.Node, kind, reason, message string) *corev1.Event
	create func(context.Context, *corev1.Event) error
	// crowd is the time in which all agents of the fleet write once; isLate says whether
	// they seem to do so now.
	crowd  func() time.Duration
	isLate func() bool
	log    *slog.Logger
	queue  chan *corev1.Event

	mu      sync.Mutex
	kinds   map[string]*rate.Limiter
	reasons map[string]*rate.Limiter
}

// StartRecorder starts a Recorder, and returns it with the function that stops it. stop waits a
// moment for the Events that are not written yet. Nothing may be recorded afterwards. crowd returns
// the time in which all agents of the fleet write once, 0 if it is not known.
func (c *Client) StartRecorder(ctx context.Context, crowd func() time.Duration, log *slog.Logger) (recorder *Recorder, stop func()) {
	r := newRecorder(c.event, c.Unretried().createEvent, crowd, c.patches.isLate, log)
	// Events that are recorded while the agent ends are written as well.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	return r, func() {
		cancel()
		<-ended
	}
}

func newRecorder(event func(node *taints.Node, kind, reason, message string) *corev1.Event, create func(context.Context, *corev1.Event) error, crowd func() time.Duration, isLate func() bool, log *slog.Logger) *Recorder {
	return &Recorder{
		event: event, create: create, crowd: crowd, isLate: isLate, log: log, queue: make(chan *corev1.Event, maxQueued),
		kinds: map[string]*rate.Limiter{}, reasons: map[string]*rate.Limiter{},
	}
}

// Event records an Event about a Node and does not wait. Events beyond the bounds are logged and
// not written.
func (r *Recorder) Event(node *taints.Node, kind, reason, message string) {
	if !r.allow(kind, reason) {
		r.log.Warn("event not written: there were too many", "type", kind, "reason", reason)
		return
	}
	select {
	case r.queue <- r.event(node, kind, reason, message):
	default:
		r.log.Warn("event not written: too many wait for the API server", "type", kind, "reason", reason)
	}
}

// allow reports whether one more Event is within the bounds. The code has few
// reasons, so the limiters are few.
func (r *Recorder) allow(kind, reason string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return limiter(r.reasons, reason, reasonBurst).Allow() && limiter(r.kinds, kind, eventBurst).Allow()
}

func limiter(all map[string]*rate.Limiter, key string, burst int) *rate.Limiter {
	if all[key] == nil {
		all[key] = rate.NewLimiter(rate.Every(eventEvery), burst)
	}
	return all[key]
}

// run writes one Event after another until the context ends, and then those that are left, for
// flushTimeout at most and as long as the API server answers.
func (r *Recorder) run(ctx context.Context) {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(flushTimeout, cancel) })()
	for {
		select {
		case <-ctx.Done():
			if len(r.queue) == 0 {
				return
			}
		case event := <-r.queue:
			r.letTaintsPass(ctx)
			for ; event != nil; event = r.next() {
				if !r.write(ctx, requests, event) {
					return
				}
			}
		}
	}
}

// next returns an Event that waits; nil: none does.
func (r *Recorder) next() *corev1.Event {
	select {
	case event := <-r.queue:
		return event
	default:
		return nil
	}
}

// letTaintsPass waits while the agents of a fleet write their taints: Events come after these, and
// not all at once. It waits no longer than the context.
func (r *Recorder) letTaintsPass(ctx context.Context) {
	if crowd := r.crowd(); crowd > 0 && pace.Sleep(ctx, Slow) && r.isLate() {
		pace.Sleep(ctx, crowd+pace.UpTo(crowd))
	}
}

// write tries an Event, by requests of its own context, until the API server has answered or there
// were too many tries. It returns false when ctx has ended and there is no answer.
func (r *Recorder) write(ctx, requests context.Context, event *corev1.Event) bool {
	for try := 1; ; try++ {
		isEnd := ctx.Err() != nil
		err := r.try(requests, event)
		switch {
		case err == nil:
			return true
		case isEnd && !isFinal(err):
			r.log.Warn("events are lost with the end of the agent", "count", len(r.queue)+1, "error", err)
			return false
		case isFinal(err) || try == eventTries:
			r.log.Warn("cannot write an event", "reason", event.Reason, "message", event.Message, "error", err)
			return true
		}
		r.log.Warn("cannot write an event; trying again", "reason", event.Reason, "error", err)
		pace.Sleep(ctx, pace.UpTo(r.crowd())+pace.UpTo(2*eventPause)) // not all agents at the same moment
	}
}

func (r *Recorder) try(ctx context.Context, event *corev1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	err := r.create(ctx, event)
	if apierrors.IsAlreadyExists(err) {
		return nil // an earlier try whose answer was lost
	}
	return err
}

// isFinal reports whether the API server refused an Event and would do so again.
func isFinal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// Announce writes a warning Event about the Node before it returns. A Recorder
// writes its own later.
func (c *Client) Announce(ctx context.Context, node *taints.Node, reason, message string) error {
	return c.createEvent(ctx, c.event(node, corev1.EventTypeWarning, reason, message))
}

// event returns an Event of now. Events about a Node must be in the namespace default, because a
// Node has no namespace.
func (c *Client) event(node *taints.Node, kind, reason, message string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: eventName(c.name, now.Time), Namespace: corev1.NamespaceDefault},
		InvolvedObject:      corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: node.Name, UID: types.UID(node.UID)},
		Reason:              reason,
		Message:             taints.Message(message),
		Type:                kind,
		Source:              corev1.EventSource{Component: fieldManager, Host: c.name},
		ReportingController: fieldManager,
		ReportingInstance:   c.name,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
	}
}

// eventName tells an Event from all others. An Event that is tried again has the
// same name, so that it is not written twice.
func eventName(node string, at time.Time) string {
	suffix := "." + strconv.FormatInt(at.UnixNano(), 16)
	node = node[:min(len(node), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return strings.TrimRight(node, "-.") + suffix
}

func (c *Client) createEvent(ctx context.Context, event *corev1.Event) error {
	err := c.kept.Post().Namespace(event.Namespace).Resource("events").
		VersionedParams(&metav1.CreateOptions{DryRun: c.dryRun}, c.codec).
		MaxRetries(c.retries).Body(event).Do(ctx).Error()
	if err != nil {
		return explain("create", "events", event.Namespace, err)
	}
	return nil
}
