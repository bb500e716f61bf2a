package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/taints/pace"
)

// joinWithin is the time between two writes: the first job goes at once,
// those that follow within this time go together.
const joinWithin = 250 * time.Millisecond

// writer is the one goroutine that writes the Node and waits for the API
// server.
type writer struct {
	client  Client
	log     *slog.Logger
	jobs    <-chan job
	alive   <-chan struct{} // signs of life of the API server
	results chan<- Result
	// mayEvictUntil is until when a NoExecute taint may be added.
	mayEvictUntil func() time.Time
	now           func() time.Time
	// crowd is the time in which all agents of the fleet write once.
	crowd     func() time.Duration
	announced map[announcement]bool
	// written is the Node as the last successful write left it.
	written *taints.Node
}

// run writes the newest job until the context ends. After a failure it tries
// the same job again with growing pauses, unless a newer one came.
func (w *writer) run(ctx context.Context) error {
	tries := newTries(w.crowd())
	isSilent := false // the last try was not answered
	for {
		j, ok := w.take(ctx)
		for ok && j != nil {
			if w.written != nil && IsNewer(w.written, j.base) { // the loop may have decided before it saw that write
				j.desired.Conditions = w.written.Transitions(j.desired.Conditions)
			}
			begin := time.Now()
			node, err := w.try(ctx, *j, tries.timeout, isSilent)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(err, errCrowded) { // the watch shows the taints meanwhile
				j.base, j.waited = node, true
				j, ok = w.pause(ctx, j, err, pace.UpTo(w.crowd()))
				continue
			}
			isSilent = isSilence(err)
			landed := node
			if err == nil {
				w.written = node
				record := node.Annotations[taints.RecordAnnotation]
				if record != j.base.Annotations[taints.RecordAnnotation] && record != j.desired.Annotations[taints.RecordAnnotation] {
					landed = j.desired.ApplyTo(node) // someone replaced our record meanwhile
				}
				maps.DeleteFunc(w.announced, func(a announcement, _ bool) bool { return !slices.Contains(j.announce, a) })
			}
			w.answer(*j, node, err)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case w.results <- Result{j.sequence, node, landed, err, isRestored(j.base, node)}:
			}
			pause := tries.after(err, j.isUrgent(), w.crowd()) - time.Since(begin)
			j, ok = w.pause(ctx, w.next(*j, node, err), err, max(joinWithin, pause))
		}
		if !ok {
			return ctx.Err()
		}
	}
}

// ErrAnswersAgain means that the API server answers after a silence. Decisions from the time of the
// silence may be outdated, so the agent decides again.
var ErrAnswersAgain = errors.New("the API server answers again")

// try writes what is desired. After a silence it only asks whether the API server answers.
func (w *writer) try(ctx context.Context, j job, timeout time.Duration, isSilent bool) (*taints.Node, error) {
	if !isSilent || !j.isUrgent() {
		return w.apply(ctx, j, timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := w.client.Ping(ctx); isSilence(err) {
		return nil, err
	}
	return nil, ErrAnswersAgain
}

// isSilence reports whether nobody answered, not even that there is an error.
func isSilence(err error) bool {
	return apiserver.IsUnanswered(err) && !errors.Is(err, errSlotStale) && !errors.Is(err, ErrAnswersAgain)
}

// take waits for the next job.
func (w *writer) take(ctx context.Context) (*job, bool) {
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case j := <-w.jobs:
			if !j.isWithdrawal() {
				return &j, true
			}
		}
	}
}

// tries are those of one job and of the jobs that replace it, or of one question.
type tries struct {
	retry   pace.Retry
	timeout time.Duration
}

// newTries returns the tries of an agent in a fleet whose writes together take crowd. If many
// agents may wait at the same time, a request waits until the API server refuses it, which happens
// after 15 s (a quarter of --request-timeout, in k8s.io/apiserver/pkg/server/config.go). A request
// that is cancelled earlier must queue again from the beginning.
func newTries(crowd time.Duration) *tries {
	return &tries{pace.NewRetry(), requestTimeout + min(crowd, requestTimeout)}
}

// after returns the pause after a try. When the API server has too much to do, the agents of
// the fleet come back one after another.
func (t *tries) after(err error, isUrgent bool, crowd time.Duration) time.Duration {
	switch {
	case err == nil:
		*t = *newTries(crowd)
		return 0
	case errors.Is(err, ErrAnswersAgain):
		t.retry = pace.NewRetry() // and the timeout stays: a small question may be answered sooner than a write
		return 0
	case errors.Is(err, context.DeadlineExceeded):
		t.timeout = min(2*t.timeout, maxRequestTimeout)
	}
	pause := t.retry.After(err, isUrgent)
	if pace.IsOverload(err) {
		pause += pace.UpTo(crowd)
	}
	return pause
}

const (
	// soonest and latest are when a job is tried again after a sign of life of the API server, in
	// addition to the time of the crowd. Urgent jobs come first, spread over the fleet, and all
	// other jobs after them. soonest is also the least time from a try to the next for such a sign:
	// on a Node that others write all the time there is always one.
	soonest = time.Second
	latest  = 15 * time.Second
)

// signsAfter returns the signs of life that shorten the pause after an error. A refusal has none:
// the API server would refuse the same again. But a Node that did not exist may exist now.
func (w *writer) signsAfter(err error) <-chan struct{} {
	if pace.IsRefusal(err) && !apierrors.IsNotFound(err) {
		return nil
	}
	return w.alive
}

// pause waits before the next try and returns the job to try then: the failed one, if any, or a
// newer one. A sign of life of the API server, or a job that is more urgent than the failed one,
// shortens the pause.
func (w *writer) pause(ctx context.Context, j *job, err error, pause time.Duration) (*job, bool) {
	alive := w.signsAfter(err)
	select {
	case <-alive: // from before the try
	default:
	}
	begin := time.Now()
	end := begin.Add(pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	hurry := func(least, within time.Duration) {
		if sooner := time.Now().Add(max(0, least) + pace.UpTo(within)); sooner.Before(end) {
			end = sooner
			timer.Reset(time.Until(end))
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case <-timer.C:
			return j, true
		case newer := <-w.jobs:
			if newer.isWithdrawal() {
				j = nil
				continue
			}
			if j != nil && newer.isUrgent() && !j.isUrgent() {
				hurry(0, soonest)
			}
			j = &newer
		case <-alive:
			if j == nil {
				continue
			}
			within := latest
			if j.isUrgent() {
				within = soonest
			}
			hurry(soonest-time.Since(begin), within+w.crowd())
		}
	}
}

// errSlotStale: the slot was not renewed for so long that another Node may
// take it.
var errSlotStale = errors.New("the eviction slot could not be renewed for too long")

// errCrowded: the taints were written, and the conditions have to wait.
var errCrowded = errors.New("the API server is slow")

// announceTimeout is how long the Event before an eviction may take.
const announceTimeout = 5 * time.Second

// apply writes the desired state. An eviction is announced first, and written only while this Node
// certainly holds the slot: the request ends before the slot can expire.
func (w *writer) apply(ctx context.Context, j job, timeout time.Duration) (*taints.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if !evicts(j) {
		return w.write(ctx, j)
	}
	left := w.mayEvictUntil().Sub(w.now())
	if left <= 0 {
		return nil, errSlotStale
	}
	ctx, cancelEviction := context.WithTimeout(ctx, left)
	defer cancelEviction()
	for _, a := range j.announce {
		if w.announced[a] {
			continue
		}
		if err := w.announce(ctx, j.base, a); err != nil {
			w.log.Warn("cannot announce an eviction by an Event", "error", err)
			continue
		}
		w.announced[a] = true
	}
	return w.write(ctx, j)
}

// write writes the taints and then the conditions. If the taints were slow, the agents of the
// fleet write their conditions one after another, so that they delay no taint:
// errCrowded.
func (w *writer) write(ctx context.Context, j job) (*taints.Node, error) {
	crowd := w.crowd()
	if crowd == 0 || j.waited || !j.isUrgent() {
		return w.client.Apply(ctx, j.base, j.desired)
	}
	begin := time.Now()
	first := j.desired
	first.Conditions, first.Gone = nil, nil
	node, err := w.client.Apply(ctx, j.base, first)
	switch {
	case err != nil:
		return node, err
	case time.Since(begin) >= apiserver.Slow:
		return node, errCrowded
	}
	return w.client.Apply(ctx, node, j.desired)
}

func (w *writer) announce(ctx context.Context, node *taints.Node, a announcement) error {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	return w.client.Announce(ctx, node, a.reason, a.message)
}

// evicts reports whether a job adds a NoExecute taint to its Node.
func evicts(j job) bool {
	return slices.ContainsFunc(j.desired.Taints, func(t taints.Taint) bool {
		return t.Effect == taints.NoExecute && !j.base.Has(t.Pair())
	})
}

// next returns what is to be tried again: nothing after success, and nothing
// when the loop has to decide again.
func (w *writer) next(failed job, newest *taints.Node, err error) *job {
	if err == nil || errors.Is(err, apiserver.ErrOvertaken) || errors.Is(err, ErrAnswersAgain) {
		return nil
	}
	if newest != nil {
		failed.base = newest
	}
	return &failed
}

func (w *writer) answer(j job, node *taints.Node, err error) {
	switch {
	case errors.Is(err, apiserver.ErrOvertaken):
		w.log.Debug("node changed while writing", "error", err)
	case errors.Is(err, ErrAnswersAgain):
		w.log.Info("the API server answers again; deciding again")
	case apierrors.IsNotFound(err):
		w.log.Warn("node does not exist; trying again", "error", err)
	case err != nil:
		w.log.Warn("cannot write the node; trying again", "error", err)
	default:
		if !taints.Equal(j.base.Taints, node.Taints) {
			w.log.Info("taints of the node changed", "from", describe(j.base.Taints), "to", describe(node.Taints))
		}
		if _, differs := j.desired.Differs(node); differs {
			w.log.Warn("the API server accepted the patch but the node lacks a part of it; a webhook may have removed it")
		}
	}
}

// maxDescribed is how many taints are logged: others may have set any number.
const maxDescribed = 20

// describe lists taints as kubectl shows them.
func describe(list []taints.Taint) []string {
	described := make([]string, 0, min(len(list), maxDescribed+1))
	for i, taint := range list {
		if i == maxDescribed {
			return append(described, fmt.Sprintf("and %d more", len(list)-i))
		}
		described = append(described, taint.String())
	}
	return described
}
