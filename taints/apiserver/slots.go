package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
)

// SlotPrefix and a number make the name of a Lease that is an eviction slot.
const SlotPrefix = "taintlet-evict-"

// Slots are the Leases that bound how many Nodes of a cluster evict at the same time. The chart
// creates them, and a Node may hold one. A slot is free when it has no holder. It is also free when
// its Lease has not moved for the cooldown, on this host's own clock, and its holder's Node is gone
// or carries none of our NoExecute pairs. So neither clocks of other hosts nor the death of an
// agent ever free a slot whose Node still evicts.
//
// The holder keeps the slot for the cooldown after its taints are gone (see
// agent/slots), so that an eviction cannot walk through the fleet.
//
// A Slots is used by one goroutine.
type Slots struct {
	client    *Client
	namespace string
	// seen is when, on this host's clock, each Lease was last seen to move.
	seen map[string]sighting
	held string
	// place is where this Node begins. seenOnce slots from there on have been
	// read once, and one of them may have been free.
	place, seenOnce int
	foundFree       bool
	next            int
}

// sighting is a state of a Lease and since when it has been seen.
type sighting struct {
	holder string
	renew  time.Time
	since  time.Time
}

// Slots returns the slots of a namespace, to be held in the name of the
// client's Node.
func (c *Client) Slots(namespace string) *Slots {
	h := fnv.New32a()
	h.Write([]byte(c.name))
	place := int(h.Sum32() % 1000)
	return &Slots{client: c, namespace: namespace, seen: map[string]sighting{}, place: place, next: place}
}

// SlotsAtATime is how many slots one call of Acquire reads while it waits for a free
// one: many Nodes may be waiting.
const SlotsAtATime = 3

// Acquire tries to get one of count slots, or finds the slot that this Node already holds. The
// first call for a slot reads all slots, in as many calls as the client's rate requires, and later
// calls read some in turn. It begins at a slot that depends on the Node, so that many Nodes do not
// all try the first. evicts reports whether a pair on another Node may be one of ours that evicts.
// An error is that of the API server; then it is not known whether this Node holds a slot.
func (s *Slots) Acquire(ctx context.Context, count int, cooldown time.Duration, evicts func(taints.Pair) bool) (held bool, err error) {
	if held, err := s.findOwn(ctx, count); held || err != nil {
		return held, err
	}
	for range min(count, SlotsAtATime) {
		lease, err := s.get(ctx, fmt.Sprint(SlotPrefix, s.next%count))
		if apierrors.IsNotFound(err) {
			s.next++
			continue // removed by hand, or never made: no slot
		}
		if err != nil {
			return false, err
		}
		free, err := s.isFree(ctx, lease, cooldown, evicts)
		if err != nil {
			return false, err
		}
		if free {
			err := s.take(ctx, lease)
			if err == nil || !isOvertaken(err) {
				return err == nil, err
			}
		}
		s.next++
	}
	return false, nil
}

// findOwn reads all slots once, to find the slot that this Node held before its
// agent's start: with a second slot, the first would stay taken while the Node
// evicts. The search for a free slot then begins at a slot that nobody holds.
func (s *Slots) findOwn(ctx context.Context, count int) (held bool, err error) {
	for ; s.seenOnce < count; s.seenOnce++ {
		at := (s.place + s.seenOnce) % count
		lease, err := s.get(ctx, fmt.Sprint(SlotPrefix, at))
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, err
		case HolderOf(lease) == s.client.name:
			if err := s.take(ctx, lease); !isOvertaken(err) {
				return err == nil, err
			}
		case HolderOf(lease) == "" && !s.foundFree:
			s.next, s.foundFree = at, true
		}
	}
	return false, nil
}

// isOvertaken reports whether another client was quicker.
func isOvertaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// isFree reports whether nobody else holds the slot, or its holder is known not
// to evict any more.
func (s *Slots) isFree(ctx context.Context, lease *coordinationv1.Lease, cooldown time.Duration, evicts func(taints.Pair) bool) (bool, error) {
	holder := HolderOf(lease)
	if holder == "" || holder == s.client.name {
		return true, nil
	}
	now := sighting{holder: holder, renew: renewedAt(lease), since: time.Now()}
	before, known := s.seen[lease.Name]
	if !known || before.holder != now.holder || !before.renew.Equal(now.renew) {
		s.seen[lease.Name] = now
		return false, nil
	}
	if now.since.Sub(before.since) < cooldown {
		return false, nil
	}
	if len(validation.IsDNS1123Subdomain(holder)) > 0 {
		return true, nil // written by hand: no Node can have that name
	}
	node, err := s.client.GetNode(ctx, holder)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, taint := range node.Taints {
		if evicts(taint.Pair()) {
			return false, nil
		}
	}
	return true, nil
}

// Renew updates the Lease, which shows other Nodes that its holder is alive. Not held means lost:
// another Node has it, or it was removed.
func (s *Slots) Renew(ctx context.Context) (held bool, err error) {
	for range conflictTries {
		var lease *coordinationv1.Lease
		lease, err = s.get(ctx, s.held)
		if apierrors.IsNotFound(err) || err == nil && HolderOf(lease) != s.client.name {
			return false, nil
		}
		if err == nil {
			err = s.take(ctx, lease)
		}
		if !apierrors.IsConflict(err) { // somebody wrote the Lease, which need not be the holder
			break
		}
	}
	return true, err
}

// Release gives the slot back.
func (s *Slots) Release(ctx context.Context) error {
	lease, err := s.get(ctx, s.held)
	if apierrors.IsNotFound(err) || err == nil && HolderOf(lease) != s.client.name {
		return nil
	}
	if err != nil {
		return err
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = nil, nil
	return s.update(ctx, lease)
}

// IsBeyond reports whether the slot that is held is none of the first count.
func (s *Slots) IsBeyond(count int) bool {
	number, err := strconv.Atoi(strings.TrimPrefix(s.held, SlotPrefix))
	return err == nil && number >= count
}

// take writes this Node's name into the Lease. The resourceVersion decides
// between two that do so at the same time.
func (s *Slots) take(ctx context.Context, lease *coordinationv1.Lease) error {
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &s.client.name, &now
	if err := s.update(ctx, lease); err != nil {
		return err
	}
	s.held = lease.Name
	return nil
}

// HolderOf returns the name of the Node that has a slot; empty: none has.
func HolderOf(lease *coordinationv1.Lease) string { return *cmp.Or(lease.Spec.HolderIdentity, new("")) }

func renewedAt(lease *coordinationv1.Lease) time.Time {
	return cmp.Or(lease.Spec.RenewTime, &metav1.MicroTime{}).Time
}

func (s *Slots) get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, s.client.call(ctx, "get", leaseResource, s.namespace+"/"+name, lease, func(get *rest.Request) {
		get.AbsPath(leaseAPI+s.namespace, "leases", name)
	})
}

func (s *Slots) update(ctx context.Context, lease *coordinationv1.Lease) error {
	data, err := json.Marshal(lease)
	if err != nil {
		return err
	}
	stored := &coordinationv1.Lease{}
	err = s.client.call(ctx, "update", leaseResource, s.namespace+"/"+lease.Name, stored, func(put *rest.Request) {
		put.Verb(http.MethodPut).AbsPath(leaseAPI+s.namespace, "leases", lease.Name).SetHeader("Content-Type", "application/json").Body(data)
		for _, stage := range s.client.dryRun {
			put.Param("dryRun", stage)
		}
	})
	if err == nil && HolderOf(stored) != HolderOf(lease) { // a proxy answered
		return explain("update", leaseResource, s.namespace+"/"+lease.Name, fmt.Errorf("the answer has the holder %q", HolderOf(stored)))
	}
	return err
}
