package node

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/pace"
)

// PolicyLookup finds out whether the admission policy is there: at the start,
// when a kept pair was lost, before a stand-in is set, and with each heartbeat, so
// that a policy that is installed later is used.
type PolicyLookup struct {
	client Client
	log    *slog.Logger
	asked  chan struct{} // has room for one
	// Answers say whether the policy is there.
	Answers chan bool
}

// NewPolicyLookup returns a lookup that was not asked yet.
func NewPolicyLookup(client Client, log *slog.Logger) *PolicyLookup {
	return &PolicyLookup{client: client, log: log, asked: make(chan struct{}, 1), Answers: make(chan bool)}
}

// Ask asks for an answer and does not wait for it.
func (p *PolicyLookup) Ask() {
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
		present, err := p.lookUp(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p.Answers <- present:
		}
	}
}

// lookUp asks until there is an answer. Being forbidden to ask is one: without
// knowing, the stand-in is the pair that stays. The error is that of the
// context.
func (p *PolicyLookup) lookUp(ctx context.Context) (present bool, err error) {
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

func (p *PolicyLookup) lookUpOnce(ctx context.Context) (present bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return p.client.KeepPolicyPresent(ctx)
}
