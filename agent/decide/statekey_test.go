package decide_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// keyer writes a world so that two worlds which a decider cannot tell apart are written
// alike. It walks through all fields by reflection, so that a field which is new is part of
// it. Times are written relative to now, revisions, terms and names relative to those seen first.
type keyer struct {
	out  []byte
	now  int64 // seconds since the year 1
	boot time.Duration
	// revision is that to which others are relative, names are those that were seen.
	revision uint64
	names    []string
	policies []*decide.Policy
	// isStale: the version before the newest can still be read. isLate: a write of a process
	// that ended can still land.
	isStale, isLate bool
	plans           map[reflect.Type][]how
}

// how says how a field is written.
type how struct {
	act act
	// old is the age beyond which times are the same.
	old time.Duration
}

type act int

const (
	plain act = iota
	// dropped: it is only shown to people, or follows from the rest.
	dropped
	// sinceBoot: a duration since the boot of the host.
	sinceBoot
	revision
	name
	// window: the last five samples, and whether there was a bad one before.
	window
	// some: whether it is more than 0.
	some
	// atMost: a duration that makes no difference beyond an age.
	atMost
)

// fields are those that are not written as they are, by type and field.
var fields = map[string]how{
	// For people only. What is lost: a restarted agent adopts a Node condition by its text,
	// and so writes conditions once less. After a reboot, times count from record.At.
	"NodeCondition.Message": {act: dropped}, "report.value": {act: dropped}, "report.clauses": {act: dropped}, "report.held": {act: dropped}, "report.from": {act: dropped}, "report.at": {old: 76 * time.Second},
	"condition.since": {act: dropped}, "condition.removals": {act: dropped},
	"ledger.decidedAt": {act: dropped}, "Record.Time": {act: dropped}, "Record.At": {act: dropped},
	"RecordCondition.summary": {act: dropped}, "Boot.At": {act: dropped}, "eviction.waits": {act: plain},
	"Observation.Message": {act: dropped}, "condition.unknownNotified": {old: time.Hour},
	"Node.ResourceVersion": {act: dropped},
	"process.policy":       {act: plain},

	"ledger.revision": {act: revision}, "ledger.landed": {act: revision}, "ledger.plannedFor": {act: revision}, "Record.Revision": {act: revision}, "active.source": {act: revision},
	"instance.Name": {act: name}, "active.name": {act: name},
	"memory.TokensAt": {act: sinceBoot, old: time.Second}, "memory.EvictedAt": {act: sinceBoot, old: time.Hour},
	"memory.RepairEndedAt": {act: sinceBoot, old: 2 * time.Hour}, "RecordCondition.TokensAt": {act: sinceBoot, old: time.Second}, "RecordCondition.SetAt": {act: sinceBoot, old: 6 * time.Hour},
	"recordDispute.LostAt": {act: sinceBoot, old: 61 * time.Second},

	"recordKeep.Until": {act: sinceBoot, old: time.Second},

	"Debouncer.window": {act: window}, "process.spent": {act: some},
	"Debouncer.held": {act: atMost, old: time.Hour}, "evidence.held": {act: atMost, old: 2 * time.Minute},

	"dispute.lostAt": {old: 61 * time.Second}, "bucket.fullAt": {old: time.Second},
	"Debouncer.SetAt": {old: 6 * time.Hour}, "Debouncer.seenAt": {old: 12 * time.Minute}, "Debouncer.badAt": {old: 12 * time.Minute}, "Debouncer.unknownSince": {old: 6 * time.Minute},
	"condition.otherSince": {old: 21 * time.Second}, "onset.since": {old: 31 * time.Second},
	"ledger.policySince": {old: 301 * time.Second}, "eviction.at": {old: time.Hour},

	"NodeCondition.LastHeartbeatTime": {old: 20 * time.Minute}, "NodeCondition.LastTransitionTime": {old: 20 * time.Minute},
	"evidence.at": {old: 12 * time.Minute}, "loss.at": {old: 61 * time.Second}, "process.set": {act: dropped}, "process.seenAt": {old: 3 * time.Second},
	"keepFailure.until": {old: time.Second}, "ledger.setAt": {old: 3 * time.Second}, "judge.evictedAt": {old: time.Hour},
}

// veryOld is the age beyond which other times are the same: no rule looks back for longer than a day.
const veryOld = 26 * time.Hour

func (k *keyer) planOf(t reflect.Type) []how {
	plan, found := k.plans[t]
	if !found {
		plan = make([]how, t.NumField())
		for i := range plan {
			plan[i] = fields[t.Name()+"."+t.Field(i).Name]
			if plan[i].old == 0 {
				plan[i].old = veryOld
			}
		}
		k.plans[t] = plan
	}
	return plan
}

// relative writes a time that is so many seconds ahead of now.
func (k *keyer) relative(seconds, nanoseconds int64, old time.Duration) {
	if limit := -int64(old / time.Second); seconds <= limit {
		seconds, nanoseconds = limit, 0
	}
	k.out = binary.AppendVarint(append(k.out, 't'), seconds*1e9+nanoseconds)
}

func (k *keyer) number(n int64) { k.out = binary.AppendVarint(k.out, n) }

func (k *keyer) text(s string) {
	k.out = append(binary.AppendVarint(k.out, int64(len(s))), s...)
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	policyType = reflect.TypeFor[decide.Policy]()
)

func (k *keyer) value(v reflect.Value, h how) {
	switch h.act {
	case dropped:
		return
	case sinceBoot:
		if v.Int() == 0 { // none
			k.out = append(k.out, '-')
			return
		}
		k.relative(int64((time.Duration(v.Int())-k.boot)/time.Second), 0, h.old)
		return
	case revision:
		k.counter(v.Uint(), &k.revision)
		return
	case window:
		bits := int64(v.Uint() & 31)
		if v.Uint() > 31 {
			bits |= 32
		}
		k.number(bits)
		return
	case some:
		k.number(min(1, v.Int()))
		return
	case atMost:
		k.number(min(int64(h.old), v.Int()))
		return
	case name:
		at := slices.Index(k.names, v.String())
		if v.String() != "" && at < 0 {
			at = len(k.names)
			k.names = append(k.names, v.String())
		}
		k.number(int64(at))
		return
	}
	k.whole(v, h)
}

// counter writes a counter that goes round, relative to the first one seen. 0 is none.
func (k *keyer) counter(n uint64, first *uint64) {
	if n == 0 {
		k.out = append(k.out, '0')
		return
	}
	if *first == 0 {
		*first = n
	}
	k.out = binary.AppendVarint(append(k.out, 'n'), int64(n-*first))
}

func (k *keyer) whole(v reflect.Value, h how) {
	switch v.Kind() {
	case reflect.Struct:
		t := v.Type()
		if t == timeType {
			wall, seconds := v.Field(0).Uint(), v.Field(1).Int()
			if wall == 0 && seconds == 0 {
				k.out = append(k.out, 'z')
				return
			}
			k.relative(seconds-k.now, int64(wall&(1<<30-1)), h.old)
			return
		}
		for i, h := range k.planOf(t) {
			if h.act != dropped {
				k.value(v.Field(i), h)
			}
		}
	case reflect.Pointer:
		switch {
		case v.IsNil():
			k.out = append(k.out, '-')
		case v.Type().Elem() == policyType:
			k.policy((*decide.Policy)(v.UnsafePointer()))
		default:
			k.out = append(k.out, '*')
			k.whole(v.Elem(), h)
		}
	case reflect.Slice, reflect.Array:
		k.number(int64(v.Len()))
		for i := range v.Len() {
			k.whole(v.Index(i), h)
		}
	case reflect.Map:
		k.mapping(v)
	case reflect.String:
		k.text(v.String())
	case reflect.Bool:
		k.out = append(k.out, byte('f'))
		if v.Bool() {
			k.out[len(k.out)-1] = 't'
		}
	case reflect.Float64:
		k.number(int64(math.Round(v.Float() * 1e6)))
	case reflect.Interface:
		k.out = append(k.out, 'i')
		if v.IsNil() {
			k.out[len(k.out)-1] = '-'
		}
	default:
		if v.CanUint() {
			k.out = binary.AppendUvarint(k.out, v.Uint())
			return
		}
		k.number(v.Int())
	}
}

// policy writes which configuration that is.
func (k *keyer) policy(p *decide.Policy) {
	at := slices.Index(k.policies, p)
	if at < 0 {
		at = len(k.policies)
		k.policies = append(k.policies, p)
	}
	k.number(int64(at))
}

// mapping writes a map with its keys in order. The record is not written as a text.
func (k *keyer) mapping(v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		return compareText(a.String(), b.String())
	})
	for _, key := range keys {
		if key.String() == taints.RecordAnnotation {
			continue
		}
		k.text(key.String())
		k.whole(v.MapIndex(key), how{old: veryOld})
	}
	k.out = append(k.out, '.')
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// key is a number that differs for worlds which a decider, or the judge, can tell apart.
func (k *keyer) key(w *world) uint64 {
	clock := w.clock()
	k.out, k.revision, k.names = k.out[:0], 0, k.names[:0]
	k.now = clock.Unix() + 62135596800
	k.boot = clock.Sub(w.boot.At)
	k.out = fmt.Appendf(k.out, "%t%t%t%v%d%t%t%s", w.apiUp, w.writesWait, w.watchWaits, w.facts, w.slot, w.judge.isOff, w.judge.isUncertain, w.boot.ID)
	k.policy(w.policy)
	k.whole(reflect.ValueOf(&w.state), how{})
	k.whole(reflect.ValueOf(w.answersSince), how{old: 12 * time.Minute})
	k.node(w, w.read)
	k.node(w, w.known)
	k.node(w, w.answer)
	k.out = fmt.Append(k.out, w.answer != nil && w.known == w.answerTo)
	if k.isStale {
		k.node(w, w.previous)
	}
	k.job(w, w.job)
	k.job(w, w.sent)
	if k.isLate {
		k.job(w, w.late)
	}
	j := &w.judge
	k.whole(reflect.ValueOf(&j.process), how{})
	k.whole(reflect.ValueOf([]any{}), how{})
	for _, part := range []reflect.Value{reflect.ValueOf(j.ours), reflect.ValueOf(j.either), reflect.ValueOf(j.bans), reflect.ValueOf(j.losses), reflect.ValueOf(j.due), reflect.ValueOf(j.keepFailed)} {
		k.whole(part, how{old: veryOld})
	}
	k.whole(reflect.ValueOf(j.evictedAt), fields["judge.evictedAt"])
	k.whole(reflect.ValueOf(j.keepUntil), how{old: time.Second})
	return maphash.Bytes(seed, k.out)
}

var seed = maphash.MakeSeed()

// node writes a version of the Node; the newest one only once.
func (k *keyer) node(w *world, n *decide.Node) {
	switch {
	case n == nil:
		k.out = append(k.out, '-')
	case n == w.read && n != nil && len(k.out) > 0 && w.known == n:
		k.out = append(k.out, '=')
		fallthrough
	default:
		k.whole(reflect.ValueOf(n), how{})
	}
}

func (k *keyer) job(w *world, j *job) {
	if j == nil {
		k.out = append(k.out, '-')
		return
	}
	k.node(w, j.base)
	k.text(j.objection)
	k.whole(reflect.ValueOf(&j.desired), how{})
	if record, found := j.desired.Annotations[taints.RecordAnnotation]; found {
		k.node(w, w.memo.read(&taints.Node{Annotations: map[string]string{taints.RecordAnnotation: record}}))
	}
}
