package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// Whatever people do to the Leases: a holder that has lost its slot
// steps down, nobody evicts without a slot, never do two Nodes evict by the one
// slot, and no agent crashes.
func TestLeasesGarbledAndDeletedByHand(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "garbled", 1)
	one, two := f.member("garbled-one", evicting+oneSlot), f.member("garbled-two", evicting+oneSlot)
	one.host.Tasks(criticalTasks)
	up := one.versions.wait(0, evicts)
	two.host.Tasks(criticalTasks)
	f.c.WaitAgentEvent(t, two.Name, "EvictionWaitsForSlot", "all eviction slots are taken")

	// What does not change the holder changes nothing.
	if err := f.edit(0, map[string]any{"leaseDurationSeconds": -5}); !apierrors.IsInvalid(err) {
		t.Errorf("the API server takes a negative duration: %v", err)
	}
	f.mustEdit(0, map[string]any{"renewTime": "9999-12-31T23:59:59.999999Z", "leaseDurationSeconds": 1})
	f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.RenewTime.Year() < 9999 })
	if count := additions(one.upToNow(f.c)[up:]); f.holder() != one.Name || count != 1 {
		t.Errorf("the slot is held by %q, NoExecute came %d times", f.holder(), count)
	}

	// Nobody's name: the holder steps down. Then the slot is as one whose holder's
	// Node is gone: free after the cooldown.
	f.mustEdit(0, map[string]any{"holderIdentity": "?? \t nobody"})
	down := one.versions.wait(up, cluster.Not(evicts))
	lease := f.waitSlot(func(lease *coordinationv1.Lease) bool {
		return lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, f.namespace)
	})
	holder, from := one, down
	if *lease.Spec.HolderIdentity == two.Name {
		holder, from = two, 0
	}
	up = holder.versions.wait(from, evicts)

	// No Lease, no eviction.
	if err := f.c.Client().CoordinationV1().Leases(f.namespace).Delete(t.Context(), lease.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	holder.versions.wait(up, cluster.Not(evicts))
	one.isCriticalOften()
	two.isCriticalOften()
	for _, m := range []*member{one, two} {
		if now := f.c.GetNode(t, m.Name); evicts(now) || !tainted(f.lesser)(now) {
			t.Errorf("without any Lease node %s has the taints %v", m.Name, taintsOf(now))
		}
	}
	f.createSlot(0)
	f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.HolderIdentity != nil })
	takeTurns(t, one.upToNow(f.c), two.upToNow(f.c))
}

// takeTurns checks that never two Nodes carried NoExecute at once: resource
// versions of one cluster are in the order of the writes.
func takeTurns(t *testing.T, histories ...[]version) {
	t.Helper()
	all := slices.Concat(histories...)
	slices.SortFunc(all, func(a, b version) int { return cmp.Compare(atoi(t, a.ResourceVersion), atoi(t, b.ResourceVersion)) })
	now := map[string]bool{}
	for _, v := range all {
		delete(now, v.Name)
		if evicts(v.Node) {
			now[v.Name] = true
		}
		if len(now) > 1 {
			t.Errorf("at resource version %s these Nodes evict at the same time: %v", v.ResourceVersion, now)
		}
	}
}

// While the API server is away from a holder, its taint stays and nobody gets
// its slot; when it is back, the slot is still its own.
func TestSlotIsKeptThroughAnOutage(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "outage", 1)
	m := &member{Node: f.c.Register(t, "outage"), host: fixtures.NewHost(t)}
	m.versions = follow(t, f.c, m.Name)
	api := cluster.NewGate(t, strings.TrimPrefix(f.c.URL(), "https://"))
	as := identityIn(t, f.c, f.namespace, m.Name)
	as.Host = "https://" + api.Address
	reachable := func(name string, do func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			api.Open()
			defer api.Refuse()
			do(t)
		})
	}
	reachable("before", func(t *testing.T) {
		// One eviction an hour: a taint that goes does not come back.
		m.agent = f.startAs(as, m.Name, m.host, evicting+strings.Replace(oneSlot, "0s", "1h", 1))
		waitNode(t, f.c, m.Name, cluster.HasCondition("HostPIDPressure", corev1.ConditionFalse))
		m.host.Tasks(criticalTasks)
		m.versions.wait(0, evicts)
	})
	m.agent.WaitLog("cannot renew the eviction slot; trying again")
	stranger := slotsOf(t, f.c, "stranger", f.namespace)
	for begin := time.Now(); time.Since(begin) < 2*slotCooldown; time.Sleep(slotCooldown / 10) {
		if acquire(t, stranger) {
			t.Fatal("somebody else got the slot of a Node that evicts")
		}
	}
	last := f.slot()
	reachable("after", func(t *testing.T) {
		lease := f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.RenewTime.After(last.Spec.RenewTime.Time) })
		if *lease.Spec.HolderIdentity != m.Name {
			t.Errorf("the slot is held by %q", *lease.Spec.HolderIdentity)
		}
		m.isCriticalOften()
	})
	versions := m.upToNow(f.c)
	if now := versions[len(versions)-1]; additions(versions) != 1 || !evicts(now.Node) {
		t.Errorf("NoExecute came %d times, the Node has %v", additions(versions), taintsOf(now.Node))
	}
}

// slotsOf returns a fleet's slots as another Node sees them.
func slotsOf(t *testing.T, c *cluster.Cluster, node, namespace string) *apiserver.Slots {
	t.Helper()
	client, err := apiserver.NewClient(c.Admin(), node)
	if err != nil {
		t.Fatal(err)
	}
	return client.Slots(namespace)
}

func acquire(t *testing.T, slots *apiserver.Slots) bool {
	t.Helper()
	held, err := slots.Acquire(t.Context(), 1, slotCooldown, config.Default().Policy().Evicts)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// An agent that starts anew goes on with the slot that its Node holds, also when
// one that it would have come to first has become free.
func TestRestartFindsItsOwnSlot(t *testing.T) {
	t.Parallel()
	const slots = 3
	f := newFleet(t, "restarted-slots", slots)
	get := func(node string) bool {
		held, err := slotsOf(t, f.c, node, f.namespace).Acquire(t.Context(), slots, slotCooldown, config.Default().Policy().Evicts)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	for i := range slots { // whoever comes to a slot first, the others are free
		name := fmt.Sprint("holder-", i)
		if err := f.edit(i, map[string]any{"holderIdentity": name}); err != nil {
			t.Fatal(err)
		}
		if !get(name) {
			t.Errorf("%s does not get a slot", name)
		}
		for other := range slots {
			lease, err := f.c.Client().CoordinationV1().Leases(f.namespace).Get(t.Context(), fmt.Sprint(apiserver.SlotPrefix, other), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if held := lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == name; held != (other == i) {
				t.Errorf("%s holds slot %d: %t", name, other, held)
			}
		}
		if err := f.edit(i, map[string]any{"holderIdentity": nil}); err != nil {
			t.Fatal(err)
		}
	}
}

// The clock of the host that wrote a Lease does not matter. A slot whose Lease
// moves is kept, and so is one whose holder's Node evicts; any other is free
// when the asking host has seen it unmoved for the cooldown.
func TestSlotIsKeptByAnyClock(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"past": -time.Hour, "future": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder := "clock-" + name
			f := newFleet(t, holder, 1)
			c, asking := f.c, slotsOf(t, f.c, "asking", f.namespace)
			c.Register(t, holder)
			renew := func() {
				f.mustEdit(0, map[string]any{"holderIdentity": holder, "renewTime": metav1.NewMicroTime(time.Now().Add(off))})
			}
			renew()
			for begin := time.Now(); time.Since(begin) < 2*slotCooldown; time.Sleep(slotCooldown / 10) {
				if acquire(t, asking) {
					t.Fatal("got a slot whose Lease moves")
				}
				renew()
			}
			c.SetTaints(t, holder, corev1.Taint{Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoExecute})
			for begin := time.Now(); time.Since(begin) < 2*slotCooldown; time.Sleep(slotCooldown / 10) {
				if acquire(t, asking) {
					t.Fatal("got a slot whose Node evicts")
				}
			}
			c.SetTaints(t, holder)
			if !acquire(t, asking) {
				t.Fatal("a slot that does not move, of a Node that does not evict, is not free")
			}

			// From now on somebody else asks, who has yet to see that it does not move.
			renew()
			second := slotsOf(t, c, "second", f.namespace)
			begin := time.Now()
			for !acquire(t, second) {
				time.Sleep(slotCooldown / 10)
			}
			if took := time.Since(begin); took < slotCooldown {
				t.Errorf("got the slot after %s", took)
			}
		})
	}
}

// As many slots as the configuration allows can be searched.
func TestOneOfAHundredSlotsIsGot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "hundred", 100)
	m := f.member("hundred", evicting+"eviction: {slots: 100, cooldown: 60s, interval: 0s}\n")
	m.host.Tasks(criticalTasks)
	m.versions.wait(0, evicts)
}

// A name that no Node can have is that of a Node that is gone.
func TestSlotOfANameThatIsNoNodesIsFree(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "no-node", 2)
	asking := slotsOf(t, f.c, "asking", f.namespace)
	for i := range 2 {
		f.mustEdit(i, map[string]any{"holderIdentity": "no/node%"})
	}
	for begin := time.Now(); ; time.Sleep(slotCooldown / 10) {
		held, err := asking.Acquire(t.Context(), 2, slotCooldown, config.Default().Policy().Evicts)
		if held {
			return
		}
		if time.Since(begin) > 12*slotCooldown { // for a machine that stalls
			t.Fatalf("slots whose holder is no Node are not to be had: %v", err)
		}
	}
}

// Somebody who writes the Lease, but leaves the holder, costs nobody the slot.
func TestForeignWriteOfALeaseCostsNoSlot(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "annotated", 1)
	m := f.member("annotated", evicting+oneSlot)
	m.host.Tasks(criticalTasks)
	m.versions.wait(0, evicts)
	for i, begin := 0, time.Now(); time.Since(begin) < slotCooldown; i++ {
		f.mustEdit(0, map[string]any{"leaseTransitions": i})
	}
	m.isCriticalOften()
	versions := m.upToNow(f.c)
	if now := versions[len(versions)-1]; additions(versions) != 1 || !evicts(now.Node) {
		t.Errorf("NoExecute came %d times, the Node has %v", additions(versions), taintsOf(now.Node))
	}
}

// Nobody is told of a wait for a slot that is free.
func TestFreeSlotIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "free", 1)
	m := f.member("free", evicting+oneSlot)
	for range 2 {
		m.host.Tasks(criticalTasks)
		waitNode(t, f.c, m.Name, evicts)
		m.host.Tasks(calmTasks)
		waitNode(t, f.c, m.Name, untainted(f.lesser))
		f.waitSlot(func(lease *coordinationv1.Lease) bool { return lease.Spec.HolderIdentity == nil })
	}
	if count := events(t, f.c, m.Name, "EvictionWaitsForSlot"); count > 0 {
		t.Errorf("people were told %d times that the free slot is taken", count)
	}
}
