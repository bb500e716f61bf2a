package agent

import (
	"context"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/taints"
)

// policyLookup finds out whether the admission policy is there: at the start,
// when a kept pair was lost, before a stand-in is set, and with each heartbeat, so
// that a policy that is installed later is used.
type policyLookup struct {
	client  NodeClient
	log     *slog.Logger
	asked   chan struct{} // has room for one
	answers chan bool
}

func newPolicyLookup(client NodeClient, log *slog.Logger) *policyLookup {
	return &policyLookup{client: client, log: log, asked: make(chan struct{}, 1), answers: make(chan bool)}
}

// ask asks for an answer and does not wait for it.
func (p *policyLookup) ask() {
	select {
	case p.asked <- struct{}{}:
	default: // asked already
	}
}

func (p *policyLookup) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.asked:
		}
		present, err := p.lookUp(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p.answers <- present:
		}
	}
}

// lookUp asks until there is an answer. Being forbidden to ask is one: without
// knowing, the stand-in is the pair that stays. The error is that of the
// context.
func (p *policyLookup) lookUp(ctx context.Context) (present bool, err error) {
	tries := pace.NewRetry()
	for {
		begin := time.Now()
		present, err := p.lookUpOnce(ctx)
		if err == nil {
			return present, nil
		}
		if apierrors.IsForbidden(err) {
			p.log.Warn("cannot look for the admission policy; assuming that it is absent", "error", err)
			return false, nil
		}
		p.log.Warn("cannot look for the admission policy; trying again", "error", err)
		if !pace.Sleep(ctx, tries.After(err, true)-time.Since(begin)) {
			return false, ctx.Err()
		}
	}
}

func (p *policyLookup) lookUpOnce(ctx context.Context) (present bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return p.client.KeepPolicyPresent(ctx)
}

// policyFreshFor is how long the answer that there is no policy holds for a new
// stand-in.
const policyFreshFor = time.Second

// policyIsOld says that a stand-in may be set no longer by what is known.
func (l *loop) policyIsOld() bool {
	return l.policyKnown && !l.facts.KeepPolicy && l.Now().Sub(l.policyAt) > policyFreshFor
}

// standsInAnew reports whether a stand-in is desired now that was not before.
func standsInAnew(before, now []decide.DesiredTaint) bool {
	return slices.ContainsFunc(now, func(p decide.DesiredTaint) bool {
		return p.Via == taints.StandIn && !slices.ContainsFunc(before, func(b decide.DesiredTaint) bool { return b.Pair == p.Pair })
	})
}
