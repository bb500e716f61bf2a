package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/process"
)

// trouble is what befalls the agents of a scene in a step, until the function is called
// that begin returns.
type trouble struct {
	name  string
	begin func(s *scene, choice uint64) (end func())
}

// unavailable says why this run cannot have a trouble; empty: it can.
func unavailable(name string) string {
	isRoot := os.Geteuid() == 0
	switch name {
	case fullScratch:
		if !isRoot {
			return "mounting a small file system needs root"
		}
	case smallGroup:
		if !isRoot {
			return "making a control group needs root"
		}
	case silentWire, expiredToken:
		if isShort() {
			return "a usual run of the tests is too short: an agent needs up to a minute and a half to recover"
		}
	}
	return ""
}

// Names of troubles that not every run can have.
const (
	fullScratch  = "scratch file system full"
	smallGroup   = "control group of memory too small"
	silentWire   = "connections fall silent"
	expiredToken = "token expired"
)

// target is the requests that a fault of requests befalls.
type target struct {
	kinds []string // empty: all
	// lead has the agents make such requests.
	lead func(s *scene)
	// before is what befalls other requests, after which the agents make these.
	before func(c call) *fault
}

// targets are those of all faults of requests. Some requests are rare.
func targets() []target {
	conflict, forbidden := requestFaultNamed("conflict"), requestFaultNamed("forbidden")
	return []target{
		{kinds: []string{"patch nodes"}},
		{kinds: []string{"patch nodes", "patch nodes/status"}},
		{kinds: []string{"get nodes", "list nodes", "watch nodes"}, lead: (*scene).cut},
		{kinds: []string{"get leases", "update leases", "create events"}},
		{},
		{kinds: []string{"get nodes"}, before: func(c call) *fault { return only(conflict, c, []string{"patch nodes"}) }},
		// client-go lists only after an error of its watch that it does not retry, as it retries one
		// that is expired or put off (isErrorRetriableWithSideEffectsFn of its reflector).
		{kinds: []string{"list nodes"}, lead: (*scene).cut, before: func(c call) *fault { return only(forbidden, c, []string{"watch nodes"}) }},
		{kinds: []string{"list endpointslices", "get mutatingadmissionpolicybindings"}, lead: func(s *scene) { s.newestAgent().kill() }},
		{kinds: []string{"update leases"}, lead: func(s *scene) { s.set(probes.PIDPressure, critical) }},
	}
}

// towards is a choice of a target that has such requests, if one has.
func towards(choice uint64, kind string) uint64 {
	var fit []uint64
	all := targets()
	for i, t := range all {
		if slices.Contains(t.kinds, kind) {
			fit = append(fit, uint64(i)) //nolint:gosec // a few
		}
	}
	if len(fit) == 0 {
		return choice
	}
	round, count := choice/uint64(len(all)), uint64(len(fit))
	return round*uint64(len(all)) + fit[round/uint64(len(shares()))%count]
}

// shares are how many of the targets a fault befalls, of 4.
func shares() []uint64 { return []uint64{1, 2, 4} }

// troubles are all kinds.
func troubles() []trouble {
	all := []trouble{
		{"stale reads", (*scene).fallBehind},
		{"time travel", (*scene).travel},
		{"SIGKILL", (*scene).killSometime},
		{"killed before a request", func(s *scene, choice uint64) func() { return s.killSoon(choice, false) }},
		{"killed after a request", func(s *scene, choice uint64) func() { return s.killSoon(choice, true) }},
		{"SIGSTOP", (*scene).stop},
		{"a second agent", (*scene).rollOver},
		{"configuration in mid-write", (*scene).rewriteConfiguration},
		{"a busy Node", (*scene).makeBusy},
		{"a person's taints", (*scene).letPersonTaint},
		{"a person removes the taint", (*scene).letPersonRemove},
		{"slot taken", (*scene).takeSlot},
		{"Node made anew", (*scene).makeAnew},
		{"out of descriptors", (*scene).takeDescriptors},
		{"memory limit close", (*scene).limitMemory},
		{"a policy refuses", (*scene).refuse},
		{"the wall clock is stepped", (*scene).stepWall},
		{fullScratch, (*scene).fillScratch},
		{"files of procfs vanish", (*scene).loseFiles},
		{smallGroup, (*scene).squeeze},
		{silentWire, (*scene).fallSilent},
		{"serving certificate rotated", (*scene).rotateCertificate},
		{"serving certificate expired", (*scene).expireCertificate},
		{"serving certificate of a strange authority", (*scene).replaceAuthority},
		{"token rotated", (*scene).rotateToken},
		{expiredToken, (*scene).expireToken},
	}
	for _, what := range []string{hookStrips, hookDelays, hookIsLate, hookRefuses, hookBreaksUp} {
		all = append(all, trouble{webhookName(what), func(s *scene, _ uint64) func() { return s.interpose(what) }})
	}
	for _, f := range requestFaults() {
		all = append(all, trouble{f.name, func(s *scene, choice uint64) func() { return s.disturb(f, choice) }})
	}
	for _, f := range watchFaults() {
		all = append(all, trouble{f.name, func(s *scene, choice uint64) func() {
			end := s.each(func(c call) *fault { return only(f, c, []string{"watch nodes"}) })
			s.cut()
			return end
		}})
	}
	return all
}

// numberOfTrouble is the index of the trouble of that name; -1: there is none.
func numberOfTrouble(name string) int {
	return slices.IndexFunc(troubles(), func(t trouble) bool { return t.name == name })
}

func only(f *fault, c call, kinds []string) *fault {
	if len(kinds) == 0 || slices.Contains(kinds, c.kind) {
		return f
	}
	return nil
}

// each asks the rule for the requests of all agents.
func (s *scene) each(r rule) (end func()) {
	for _, a := range s.running() {
		a.proxy.begin(r)
	}
	return func() {
		for _, a := range s.running() {
			a.proxy.begin(nil)
			a.proxy.cut() // what a fault holds up goes on
		}
	}
}

func (s *scene) cut() {
	for _, a := range s.running() {
		a.proxy.cut()
	}
}

// running are the agents that were not ended.
func (s *scene) running() []*runner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.agents), func(r *runner) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.isEnded
	})
}

// newestAgent is the agent that was started last.
func (s *scene) newestAgent() *runner {
	running := s.running()
	return running[len(running)-1]
}

// coin is the same for the same number.
func coin(choice uint64, number int) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, choice, number)
	return h.Sum64()
}

func (s *scene) disturb(f *fault, choice uint64) (end func()) {
	all := targets()
	at, share := all[choice%uint64(len(all))], shares()[choice/uint64(len(all))%3]
	s.note("%d/4 of %s: %s", share, strings.Join(at.kinds, ", "), f.name)
	begin, before := time.Now(), s.refused()
	stop := s.each(func(c call) *fault {
		if at.before != nil && coin(choice, c.number)%4 == 0 {
			if led := at.before(c); led != nil {
				return led
			}
		}
		if coin(choice, c.number)%4 >= share {
			return nil
		}
		return only(f, c, at.kinds)
	})
	if at.lead != nil {
		at.lead(s)
	}
	return func() {
		stop()
		after := s.refused()
		for name, count := range after {
			s.judgePace(name, count-before[name], time.Since(begin))
		}
	}
}

// refused is how often each fault befell a patch of the Node.
func (s *scene) refused() map[string]int {
	count := map[string]int{}
	for _, a := range s.running() {
		a.proxy.mu.Lock()
		for point, times := range a.proxy.reached {
			if name, kind, _ := strings.Cut(point, " | "); kind == "patch nodes" {
				count[name] += times
			}
		}
		a.proxy.mu.Unlock()
	}
	return count
}

// judgePace bounds how often a refused patch is tried again: after a second, two, four and
// so on, and at once after something new was decided. After a conflict, ten tries are one.
func (s *scene) judgePace(name string, tries int, over time.Duration) {
	most := 6 + int(over.Seconds())
	if strings.HasPrefix(name, "conflict") {
		most *= 10
	}
	if tries > most {
		s.judge.complain(fmt.Sprintf("%d patches of the Node in %s of %q, at most %d are allowed", tries, over, name, most))
	}
}

// cachedReads are those that an API server may answer from what it has seen. Asked for one
// object without a resource version, it reads the newest one from etcd.
func cachedReads() []string { return []string{"list nodes", "watch nodes"} }

// fallBehind has such reads answered by an API server that has not seen the newest versions.
func (s *scene) fallBehind(choice uint64) (end func()) {
	versions := s.judge.seen()
	behind := stale("stale reads", versions[:max(1, len(versions)-1-int(choice%6))])
	end = s.each(func(c call) *fault { return only(behind, c, cachedReads()) })
	s.cut()
	return end
}

// travel has reads answered now by an API server that is behind, now by one that is not.
func (s *scene) travel(choice uint64) (end func()) {
	end = s.each(func(c call) *fault {
		if coin(choice, c.number)%2 == 0 {
			return nil
		}
		versions := s.judge.seen()
		behind := stale("time travel", versions[:max(1, len(versions)-1-int(coin(choice, c.number)/2%6))])
		return only(behind, c, cachedReads())
	})
	s.cut()
	return s.meanwhile(end, 700*time.Millisecond, func() { s.cut() })
}

// seen are the versions so far of the present object.
func (j *judge) seen() []*corev1.Node {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.versions)
}

// meanwhile does that again and again until the trouble ends.
func (s *scene) meanwhile(end func(), every time.Duration, do func()) func() {
	ctx, cancel := context.WithCancel(s.t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for process.Pause(ctx, every) == nil {
			do()
		}
	})
	return func() {
		cancel()
		group.Wait()
		end()
	}
}

func nothing() {}

func (s *scene) killSometime(choice uint64) (end func()) {
	after := time.Duration(choice%2000) * time.Millisecond
	timer := time.AfterFunc(after, func() {
		s.note("SIGKILL")
		s.newestAgent().kill()
	})
	return func() { timer.Stop() }
}

// killSoon kills the agent at one of its next requests.
func (s *scene) killSoon(choice uint64, isAfter bool) (end func()) {
	r := s.newestAgent()
	number := r.proxy.numbered() + 1 + int(choice%8)
	r.proxy.begin(r.killAt(number, isAfter, func(kind string) { s.note("killed at request %d, %s", number, kind) }))
	return func() { r.proxy.begin(nil) }
}

func (s *scene) stop(uint64) (end func()) {
	pid := s.newestAgent().pid()
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have been killed
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
}

func (r *runner) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.PID()
}

// rollOver starts a newer agent and ends the older one, as a DaemonSet does that surges. If
// the older one was active to the end, the newer one would wait for three heartbeats, so it
// starts again.
func (s *scene) rollOver(uint64) (end func()) {
	older := s.newestAgent()
	newer := s.start()
	return func() {
		older.end()
		status, err := decide.ReadRecord(apiserver.NodeOf(s.c.GetNode(s.t, s.name)))
		if err != nil || status.Instance.Name != newer.instance() {
			s.note("the newer agent starts again")
			newer.kill()
		}
	}
}

// instance is the name of the newest process in the record; empty: it has not started.
func (r *runner) instance() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, after, _ := strings.Cut(r.logs[len(r.logs)-1].String(), " instance=")
	name, _, _ := strings.Cut(after, " ")
	return name
}

func (s *scene) rewriteConfiguration(choice uint64) (end func()) {
	length := int(choice % uint64(len(configuration)))
	s.note("the configuration is cut off after %d bytes", length)
	cut := configuration[:length] + "\n {"                             // the beginning alone could be a configuration of its own
	if err := os.WriteFile(s.config, []byte(cut), 0o600); err != nil { // not in one piece
		s.judge.complain(err.Error())
	}
	s.judge.allow(4)
	s.mayEnd.Add(1) // an agent that starts now refuses to run
	return func() {
		s.configure(configuration)
		time.AfterFunc(5*time.Second, func() { s.mayEnd.Add(-1) }) // it may be at its end
	}
}

// makeBusy has somebody else write the Node all the time.
func (s *scene) makeBusy(uint64) (end func()) {
	number := 0
	return s.meanwhile(nothing, 30*time.Millisecond, func() {
		number++
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, noiseAnnotation, number)
		_, err := s.c.Client().CoreV1().Nodes().Patch(context.Background(), s.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			s.note("the patch of somebody else fails: %v", err)
		}
	})
}

// letPersonTaint has a person add and remove a taint of theirs.
func (s *scene) letPersonTaint(uint64) (end func()) {
	taint := corev1.Taint{Key: "example.com/tonight", Effect: corev1.TaintEffectNoSchedule}
	toggle := func() {
		s.person("adds or removes a taint", func(node *corev1.Node) {
			had := len(node.Spec.Taints)
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key })
			if len(node.Spec.Taints) == had {
				node.Spec.Taints = append([]corev1.Taint{taint}, node.Spec.Taints...)
			}
		})
	}
	toggle()
	return s.meanwhile(nothing, 100*time.Millisecond, toggle)
}

// letPersonRemove has a person remove the taint of memory, once in a seed: twice would be a
// contest, and the agent would give way.
func (s *scene) letPersonRemove(uint64) (end func()) {
	if !s.hasRemoved {
		s.hasRemoved = true
		s.person("removes the taint of memory", func(node *corev1.Node) {
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "taintlet.dev/memory-pressure" })
		})
	}
	return nothing
}

// takeSlot has another Node hold the slot, unless this one does.
func (s *scene) takeSlot(uint64) (end func()) {
	if s.holder() != "" {
		return nothing
	}
	take := func() {
		if err := s.hold(context.Background(), "somebody-else"); err != nil {
			s.note("the slot cannot be held: %v", err)
		}
	}
	take()
	return s.meanwhile(func() { s.free() }, time.Second, take)
}

func (s *scene) free() {
	if err := s.hold(context.Background(), ""); err != nil {
		s.judge.complain(err.Error())
	}
}

// makeAnew removes the Node and registers it again. Its agent gets another token.
func (s *scene) makeAnew(uint64) (end func()) {
	s.personal.Lock()
	defer s.personal.Unlock()
	ctx := s.t.Context()
	_ = s.node.Stop() // its last report may have met a fault
	s.judge.furnish(true)
	if err := s.c.Client().CoreV1().Nodes().Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
		s.judge.complain(err.Error())
	}
	s.register()
	now := s.c.GetNode(s.t, s.name)
	s.judge.until(bound, func(node *corev1.Node) bool {
		return node.UID == now.UID && len(after([]*corev1.Node{now}, node.ResourceVersion)) == 0
	})
	s.judge.furnish(false)
	for _, r := range s.running() {
		r.identify()
		r.kill()
	}
	return nothing
}

// furnish says that others may change anything of theirs.
func (j *judge) furnish(on bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.isFurnished = on
}

// takeDescriptors leaves the agent's process no file that it does not have open.
func (s *scene) takeDescriptors(uint64) (end func()) {
	pid := s.newestAgent().pid()
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		return nothing // it was killed
	}
	few := unix.Rlimit{Cur: 4, Max: before.Max}
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil)
	s.cut()
	s.mayEnd.Add(1) // it may not have read its configuration yet
	return func() {
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil)
		time.AfterFunc(5*time.Second, func() { s.mayEnd.Add(-1) }) // it may be at its end
	}
}

// limitMemory starts the agent with a limit that the Go runtime can hardly keep.
func (s *scene) limitMemory(uint64) (end func()) {
	r := s.newestAgent()
	limit := func(text string) {
		r.mu.Lock()
		r.env = append(slices.Clone(r.env), "GOMEMLIMIT="+text)
		r.mu.Unlock()
		r.kill()
	}
	limit("16MiB")
	return func() { limit("64MiB") }
}

// refuseAnnotation has the policy of the suite refuse the agents' writes to a Node.
const refuseAnnotation = "example.com/refuse"

func (s *scene) refuse(uint64) (end func()) {
	s.person("has a policy refuse the agents' writes", func(node *corev1.Node) { node.Annotations[refuseAnnotation] = "true" })
	return func() {
		s.person("lets the agents write again", func(node *corev1.Node) { delete(node.Annotations, refuseAnnotation) })
	}
}

// dice are those of a seed.
func dice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 29)) } //nolint:gosec // not a secret
