package decide_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// toldText is what a record says of a condition to people.
type toldText struct {
	Level           probes.Level
	Since, ClearsAt time.Time
	HeldBy          describe.Hold
	Flaps           int
}

func toldOf(c decide.RecordCondition) toldText {
	return toldText{c.Level, c.Since.Time, c.ClearsAt.Time, c.HeldBy, c.Flaps}
}

// memory returns what the Node's record says of memory.
func (s *sim) memory(t *testing.T) decide.RecordCondition {
	t.Helper()
	status, err := decide.ReadRecord(s.read.Node)
	if err != nil {
		t.Fatal(err)
	}
	return status.Conditions[probes.MemoryPressure]
}

// A reader of the Node alone learns the level, since when, when it clears, how often
// it was set, and what holds it back.
func TestRecordTellsPeopleWhatTheyAsk(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	if status, err := decide.ReadRecord(s.read.Node); err != nil || status.Instance.Name != "" {
		t.Errorf("a Node without a record: %+v %v", status, err)
	}
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	set := s.now
	if got := toldOf(s.memory(t)); got != (toldText{Level: probes.Degraded, Since: set, Flaps: 1}) {
		t.Errorf("bad: %+v", got)
	}
	s.after(time.Second, sample(probes.MemoryPressure, "ok"))
	good := s.now
	for range 10 {
		s.after(time.Second, sample(probes.MemoryPressure, "ok"))
	}
	want := toldText{Level: probes.Degraded, Since: set, ClearsAt: good.Add(2 * time.Minute), Flaps: 1}
	if got := toldOf(s.memory(t)); got != want {
		t.Errorf("good again: %+v, want %+v", got, want)
	}
	s.edit(func(n *taints.Node) { n.Annotations[taints.PausedAnnotation] = "true"; n.Taints = nil })
	s.after(time.Minute, sample(probes.MemoryPressure, "bad"))
	if got := toldOf(s.memory(t)); got != (toldText{Level: probes.Degraded, Since: set, HeldBy: describe.HeldPaused, Flaps: 1}) {
		t.Errorf("paused: %+v", got)
	}
	s.restart(false, 0)
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	if got := s.memory(t); !got.Since.Equal(set) || got.Flaps != 1 {
		t.Errorf("after a restart: %+v", got)
	}
}

// What the record tells people decides nothing: two agents, one of which reads it
// forged, decide the same.
func TestForgedTextForPeopleDecidesNothing(t *testing.T) {
	for _, forged := range []string{
		`"since":"2099-01-01T00:00:00Z","clearsAt":"2000-01-01T00:00:00Z","heldBy":"Vetoed","flaps":99`,
		`"since":"nonsense","clearsAt":"nonsense","heldBy":"nonsense","flaps":-1`,
		`"since":"","heldBy":""`,
	} {
		r := random(1)
		honest := past(settings(r), r)
		twin := honest.fork()
		twin.edit(func(n *taints.Node) {
			var conditions string
			for i, c := range names() {
				if i > 0 {
					conditions += ","
				}
				status, err := decide.ReadRecord(n)
				if err != nil {
					t.Fatal(err)
				}
				level, err := status.Conditions[c].Level.MarshalText()
				if err != nil {
					t.Fatal(err)
				}
				conditions += `"` + string(c) + `":{"level":"` + string(level) + `",` + forged + `}`
			}
			forge(n, "conditions", "{"+conditions+"}")
		})
		plain := honest.fork()
		plain.edit(func(n *taints.Node) { // the same without what is told
			n.Annotations[taints.RecordAnnotation] = twin.read.Annotations[taints.RecordAnnotation]
			stripTold(n)
		})
		for _, s := range []*sim{twin, plain} {
			s.restart(false, 0)
			s.events = nil
		}
		for i := range 3000 {
			symbol := "ok" // bad for one minute of ten
			if i%600 < 60 {
				symbol = anySample(random(uint64(i)))
			}
			for _, s := range []*sim{twin, plain} {
				s.after(time.Second, sample(names()[i%4], symbol))
			}
			if !taints.Equal(twin.read.Taints, plain.read.Taints) || len(twin.events) != len(plain.events) {
				t.Fatalf("%s: step %d: %v and %v", forged, i, twin.read.Taints, plain.read.Taints)
			}
		}
		if len(twin.events) == 0 {
			t.Error("nothing was decided")
		}
	}
}

// stripTold removes from the record what it says to people.
func stripTold(n *taints.Node) {
	var whole map[string]json.RawMessage
	if json.Unmarshal([]byte(n.Annotations[taints.RecordAnnotation]), &whole) != nil {
		return
	}
	n.Annotations[taints.RecordAnnotation] = recordedOf(n)
	for _, field := range []string{"revision", "at", "time"} {
		forge(n, field, string(whole[field]))
	}
}
