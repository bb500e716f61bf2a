package security

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/cluster"
)

func annotationAttacks() []attack {
	return []attack{
		{name: "long pauses", guarded: true, quiet: true, what: "the annotation `taintlet.dev/paused` with 200 KB of several kinds; it stops new taints, as it should, and its end is what the delay counts from", run: pauseAtLength},
		{name: "long records", guarded: true, what: "records of up to 250 KB, such as one with 29,000 pairs", run: writeLongRecords},
		{name: "full annotations", guarded: true, what: "other annotations leave no byte of the 262,144 for the record", run: fillAnnotations},
		{name: "forged records", guarded: true, quiet: true, what: "every field of a real record with wrong types, extreme numbers, another version or instance and others' pairs, taken over by the agent; in the short form each twentieth", run: forgeRecords},
	}
}

// annotate writes annotations of the Node as who may do that; an empty value
// removes one.
func (s *scene) annotate(t *testing.T, values map[string]string) {
	t.Helper()
	patched := map[string]any{}
	for key, value := range values {
		patched[key] = value
		if value == "" {
			patched[key] = nil
		}
	}
	text := marshal(t, map[string]any{"metadata": map[string]any{"annotations": patched}})
	if _, err := s.admin.CoreV1().Nodes().Patch(t.Context(), s.node, types.MergePatchType, []byte(text), metav1.PatchOptions{FieldManager: "attacker"}); err != nil {
		t.Fatalf("%.200v", err)
	}
}

// pauseAtLength pauses while the Node is tainted: the taint goes with recovery, and
// none comes until the pause is over.
func pauseAtLength(t *testing.T, c *scene) (attempts, denied int) {
	const long = 200_000
	var n count
	values := []string{
		strings.Repeat("x", long), strings.Repeat(",", long), strings.Repeat("MemoryPressure,", long/15) + "x",
		strings.Repeat("MemoryPressure,", long/15) + "MemoryPressure", strings.Repeat("\u0000\u202e\n", long/5),
	}
	for _, value := range values[:shortOr(1, len(values))] {
		c.host.Memory(2)
		c.taintComes(time.Now(), maxDelay)
		c.annotate(t, map[string]string{taints.PausedAnnotation: value})
		c.recover()
		c.host.Memory(2)
		c.attacked.WaitMetric(`taintlet_held{by="Paused",condition="MemoryPressure",what="taint"} 1`)
		seen := c.attacked.Metric(badSamples)
		cluster.Eventually(t, "two bad samples", func() error {
			if now := c.attacked.Metric(badSamples); now < seen+2 {
				return fmt.Errorf("%d", now-seen)
			}
			return nil
		})
		node, _, _ := c.nodes.newest()
		n.add(!isTainted(node)) // it is a pause, and nothing but that
		if isTainted(node) {
			t.Error("a taint came in spite of a pause")
		}
		c.annotate(t, map[string]string{taints.PausedAnnotation: ""})
		c.taintComes(time.Now(), maxDelay)
		c.recover()
	}
	return n.attempts, n.denied
}

const badSamples = `taintlet_probe_samples_total{condition="MemoryPressure",level="Degraded"}`

func writeLongRecords(t *testing.T, c *scene) (attempts, denied int) {
	var n count
	pairs := make([]string, 29_000)
	for i := range pairs {
		pairs[i] = fmt.Sprintf(`"%x:A"`, i)
	}
	long := strings.Repeat("x", 250_000)
	records := []string{
		`{"version":1,"revision":900000,"owned":[` + strings.Join(pairs, ",") + `]}`,
		`{"version":1,"revision":900000,"boot":"` + long + `"}`,
		`{"version":1,"revision":900000,"instance":{"name":"` + long + `","term":9}}`,
		`{"version":1,"revision":900000,"conditions":{` + strings.Repeat(`"a":{"level":"OK"},`, 13_000) + `"b":{"level":"OK"}}}`,
		`{"version":1,"revision":` + strings.Repeat("9", 250_000) + `}`,
		strings.Repeat(`{"a":`, 50_000), strings.Repeat("[", 250_000), long,
	}
	for _, record := range records[:shortOr(1, len(records))] {
		c.leaveToNewerRelease(t)
		c.annotate(t, map[string]string{taints.RecordAnnotation: record})
		c.waitCycle()
		ok := c.isOwnRecord() && c.revision(t) < 900_000 // of an agent that began anew
		n.add(ok)
		if !ok {
			t.Errorf("the record is not refused and replaced: %.60s", record)
		}
	}
	return n.attempts, n.denied
}

// isOwnRecord says whether the Node's record is by the attacked agent.
func (s *scene) isOwnRecord() bool {
	node, _, _ := s.nodes.newest()
	return s.isOwn(node)
}

// revision is that of the Node's record.
func (s *scene) revision(t *testing.T) (revision int) {
	t.Helper()
	node, _, _ := s.nodes.newest()
	var record struct{ Revision int }
	if err := json.Unmarshal([]byte(node.Annotations[taints.RecordAnnotation]), &record); err != nil {
		t.Error(err)
	}
	return record.Revision
}

func (s *scene) isOwn(node *corev1.Node) bool {
	return isRecordOf(node, s.attacked)
}

// fillAnnotations leaves no room, with and without a record of ours on the Node.
func fillAnnotations(t *testing.T, c *scene) (attempts, denied int) {
	var n count
	for _, left := range []int{0, 200, 40, 1000}[:shortOr(1, 4)] {
		c.annotate(t, map[string]string{taints.RecordAnnotation: ""})
		for _, part := range []string{"a", "b", "c", "d"} { // the record may come back between
			node, _, _ := c.nodes.newest()
			room := 256<<10 - left
			for key, value := range node.Annotations {
				room -= len(key) + len(value)
			}
			size := min(room, 100_000) - len(ofAttacker+part)
			if part == "d" {
				size = room - len(ofAttacker+part)
			}
			if size <= 0 {
				continue
			}
			c.fill(part, size)
		}
		c.waitCycle()
		n.add(true)
		c.annotate(t, map[string]string{ofAttacker + "a": "", ofAttacker + "b": "", ofAttacker + "c": "", ofAttacker + "d": ""})
	}
	c.waitCycle()
	c.nodes.wait(t, "a record when there is room again", c.isOwn)
	return n.attempts, n.denied
}

// fill puts that much on the Node. That there is no room for it is no failure: the
// agent was quicker.
func (s *scene) fill(part string, size int) {
	text := marshal(s.t, map[string]any{"metadata": map[string]any{"annotations": map[string]string{ofAttacker + part: strings.Repeat("x", size)}}})
	if _, err := s.admin.CoreV1().Nodes().Patch(s.t.Context(), s.node, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
		s.t.Logf("fill: %.200v", err)
	}
}

// forgeRecords has the agent take over each forged record, as it does when it
// starts: while a record of a newer release is there it is read-only, and then it
// reads what it finds. Each is also written over the agent's own.
func forgeRecords(t *testing.T, c *scene) (attempts, denied int) {
	var n count
	c.calm(t)
	c.nodes.wait(t, "a record", c.isOwn)
	node, _, _ := c.nodes.newest()
	real := node.Annotations[taints.RecordAnnotation]
	forged := forgedAnnotations(t, real)
	names := slices.Sorted(maps.Keys(forged))
	for i := 0; i < len(names); i += shortOr(20, 1) {
		name := names[i]
		c.annotate(t, map[string]string{taints.RecordAnnotation: forged[name], taints.HeldAnnotation: "dedicated,example.com/gpu"})
		c.takeOver(t, name, forged[name])
		n.add(len(c.nodes.foreignChanges()) == 0)
		if i%shortOr(160, 10) == 0 {
			c.takeOver(t, "a real one", real) // a forged dispute or level counts no more
			c.cycle()
		}
	}
	c.takeOver(t, "a real one", real)
	return n.attempts, n.denied
}

// takeOver has the agent take over a record, and returns when the agent has
// written its own again.
func (s *scene) takeOver(t *testing.T, name, record string) {
	t.Helper()
	s.leaveToNewerRelease(t)
	s.annotate(t, map[string]string{taints.RecordAnnotation: record})
	var version struct{ Version int }
	isNewer := json.Unmarshal([]byte(record), &version) == nil && version.Version > 1
	s.waitReady(t, name, !isNewer)
}

// leaveToNewerRelease makes the agent read-only, and returns when it says so.
func (s *scene) leaveToNewerRelease(t *testing.T) {
	t.Helper()
	s.annotate(t, map[string]string{taints.RecordAnnotation: `{"version":9}`})
	s.waitReady(t, "of a newer release", false)
}

func (s *scene) waitReady(t *testing.T, name string, ready bool) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("readiness %t with the record %s", ready, name), func() error {
		if code, body := s.attacked.Get("/readyz"); (code == http.StatusOK) != ready {
			return fmt.Errorf("%d %.200s", code, body)
		}
		return nil
	})
}

// forgedAnnotations are records that nobody but an attacker writes, by name: each field of
// a real one replaced by each of many values, and fields that are nested.
func forgedAnnotations(t *testing.T, real string) map[string]string {
	t.Helper()
	const huge = "18446744073709551615"
	values := map[string]string{
		"null": `null`, "true": `true`, "a string": `"x"`, "a list": `[]`, "an object": `{}`, "-1": `-1`, "0": `0`,
		"1e300": `1e300`, "2^64-1": huge, "2^63-1": `9223372036854775807`, "-2^63": `-9223372036854775808`, "2^63": `9223372036854775808`,
		"half": `0.5`, "a list of lists": `[[[]]]`, "a long string": `"` + strings.Repeat("x", 10_000) + `"`,
	}
	forged := map[string]string{"nothing at all": "x", "an empty object": "{}", "a list": "[]", "half of it": real[:len(real)/2], "twice": real + real}
	for _, field := range []string{"version", "revision", "boot", "at", "time", "instance", "owned", "tokensAt", "evictedAt", "conditions"} {
		for name, value := range values {
			forged[field+" is "+name] = with(t, real, value, field)
		}
	}
	for _, path := range [][]string{
		{"instance", "name"}, {"instance", "term"}, {"instance", "startedAt"},
		{"conditions", "MemoryPressure", "level"}, {"conditions", "MemoryPressure", "penalty"}, {"conditions", "MemoryPressure", "setAt"},
		{"conditions", "MemoryPressure", "dispute"},
	} {
		for _, name := range []string{"null", "a string", "-1", "1e300", "2^64-1", "2^63-1", "-2^63", "a list"} {
			forged[strings.Join(path, ".")+" is "+name] = with(t, real, values[name], path...)
		}
	}
	for _, level := range []string{"Degraded", "Critical", "Unknown"} {
		for _, condition := range []string{"MemoryPressure", "PIDPressure", "NetworkUnavailable", "Foreign"} {
			forged[condition+" is "+level] = with(t, real, `{"level":"`+level+`","penalty":1e9}`, "conditions", condition)
		}
	}
	for stage, dispute := range map[string]string{
		"contested": `{"stage":1}`, "in the stand-in": `{"stage":2,"until":9223372036854775807}`, "withdrawn": `{"stage":3,"until":-9223372036854775808}`, "beyond": `{"stage":200}`,
	} {
		forged["a dispute "+stage] = with(t, real, `{"level":"Degraded","dispute":{"Degraded":`+dispute+`,"Critical":`+dispute+`}}`, "conditions", "MemoryPressure")
	}
	for name, pairs := range map[string]string{
		"dedicated": `["dedicated:NoSchedule"]`, "the GPU": `["example.com/gpu:NoExecute"]`, "maintenance": `["example.com/maintenance:PreferNoSchedule"]`,
		"all":                   `["dedicated:NoSchedule","example.com/gpu:NoExecute","example.com/maintenance:PreferNoSchedule","node.kubernetes.io/unschedulable:NoSchedule"]`,
		"one without an effect": `["dedicated:"]`, "one without a key": `[":NoSchedule"]`, "one without a colon": `["dedicated"]`,
	} {
		for _, term := range []string{"0", "1", huge} {
			owned := with(t, real, pairs, "owned")
			forged["others' pairs: "+name+", term "+term] = with(t, owned, term, "instance", "term")
			forged["others' pairs: "+name+", revision "+term] = with(t, owned, term, "revision")
		}
	}
	return forged
}

// with is a record with another value in a field.
func with(t *testing.T, record, value string, path ...string) string {
	t.Helper()
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(record), &fields); err != nil {
		t.Fatal(err)
	}
	fields[path[0]] = json.RawMessage(value)
	if len(path) > 1 {
		inner := "{}"
		var before map[string]json.RawMessage
		if json.Unmarshal([]byte(record), &before) == nil && before[path[0]] != nil {
			inner = string(before[path[0]])
		}
		fields[path[0]] = json.RawMessage(with(t, inner, value, path[1:]...))
	}
	return marshal(t, fields)
}
