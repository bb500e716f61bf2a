package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/taints/pace"
)

// PolicyLookup finds out whether the admission policy is installed: at the start, when a kept pair
// was lost, before a stand-in is set, and with each heartbeat, so that the agent uses a policy that
// is installed later.
type PolicyLookup struct {
	client      Client
	crowd       func() time.Duration // as that of the writer
	log         *slog.Logger
	asked       chan struct{} // has room for one
	withVersion atomic.Bool   // the same
	// Answers are the facts that are known of the policy.
	Answers chan PolicyAnswer
}

// PolicyAnswer reports whether the policy is installed.
type PolicyAnswer struct {
	IsPresent bool
	// Version is that of the policy; empty: the question was asked without it, or there is no
	// policy.
	Version string
}

// NewPolicyLookup returns a lookup that has not been asked yet. crowd is the time in which all agents
// of the fleet ask once.
func NewPolicyLookup(client Client, crowd func() time.Duration, log *slog.Logger) *PolicyLookup {
	return &PolicyLookup{client: client, crowd: crowd, log: log, asked: make(chan struct{}, 1), Answers: make(chan PolicyAnswer)}
}

// Ask asks for an answer, with the version of the policy or without it, and does not wait
// for it.
func (p *PolicyLookup) Ask(withVersion bool) {
	if withVersion {
		p.withVersion.Store(true)
	}
	select {
	case p.asked <- struct{}{}:
	default: // asked already
	}
}

// Run looks the policy up when it is asked to, until the context ends.
func (p *PolicyLookup) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.asked:
		}
		answer, err := p.lookUp(ctx, p.withVersion.Swap(false))
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p.Answers <- answer:
		}
	}
}

// lookUp asks until there is an answer. Being forbidden to ask is one: without
// knowing, the stand-in is the pair that stays. The error is that of the
// context.
func (p *PolicyLookup) lookUp(ctx context.Context, withVersion bool) (answer PolicyAnswer, err error) {
	tries := newTries(p.crowd())
	for {
		begin := time.Now()
		asking, cancel := context.WithTimeout(ctx, tries.timeout)
		answer.IsPresent, answer.Version, err = p.client.KeepPolicy(asking, withVersion)
		cancel()
		if err == nil {
			return answer, nil
		}
		if apierrors.IsForbidden(err) {
			p.log.Warn("cannot look for the admission policy; assuming that it is absent", "error", err)
			return PolicyAnswer{}, nil
		}
		p.log.Warn("cannot look for the admission policy; trying again", "error", err)
		if !pace.Sleep(ctx, tries.after(err, true, p.crowd())-time.Since(begin)) {
			return PolicyAnswer{}, ctx.Err()
		}
	}
}
