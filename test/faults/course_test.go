package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/process"
)

// A course is what happened in a scene, in the language of the decider's scenario files. It
// has what went into the decisions of the agents, and what others did to the Node.

// courseConfiguration makes the configuration of the decider's scenarios that of the suite.
func courseConfiguration() []string {
	return []string{
		"config clear-after 500ms 500ms", "config critical-after 1s", "config budget 20 10s",
		"config rule pid example.com/pids:NoSchedule", "config also pid Critical example.com/pids:NoExecute",
		"config eviction-interval 0s", "slot unknown", "writes wait",
	}
}

// versionAt is a version of the Node and when the judge saw it.
type versionAt struct {
	node *corev1.Node
	at   time.Duration
}

// happening is an event of a course.
type happening struct {
	at    time.Duration
	agent string // whose process it is about; empty: nobody's
	event string
}

// course writes what happened in the scene.
func (s *scene) course() (string, error) {
	all, err := s.traces()
	if err != nil {
		return "", err
	}
	s.judge.mu.Lock()
	versions := slices.Clone(s.judge.all)
	s.judge.mu.Unlock()
	return courseOf(s.name, versions, all), nil
}

// courseOf writes a course from all versions of the Node and the traces of all processes.
func courseOf(name string, versions []versionAt, all []trace) string {
	earliest(versions, all)
	happened := append(othersDid(versions), agentsDid(versions, all)...)
	slices.SortStableFunc(happened, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	var text strings.Builder
	fmt.Fprintf(&text, "# The course of %s.\n", name)
	for _, event := range slices.Concat(courseConfiguration(), firstOfOthers(versions[0].node)) {
		fmt.Fprintf(&text, "0s %s\n", event)
	}
	begin, agent := versions[0].at, "first"
	for _, h := range happened {
		at := max(0, h.at-begin).Round(time.Millisecond)
		if h.agent != "" && h.agent != agent {
			agent = h.agent
			fmt.Fprintf(&text, "%s agent %s\n", at, agent)
		}
		fmt.Fprintf(&text, "%s %s\n", at, h.event)
	}
	return text.String()
}

// earliest gives each version the time at which it was first seen: an agent may have it sooner
// than the judge.
func earliest(versions []versionAt, all []trace) {
	first := map[string]time.Duration{}
	for _, one := range all {
		for _, d := range one.decisions {
			if at, known := first[d.Version]; !known || d.At < at {
				first[d.Version] = d.At
			}
		}
	}
	for i, v := range versions {
		if at, known := first[v.node.ResourceVersion]; known && at <= v.at {
			versions[i].at = at - 1
		}
	}
}

// firstOfOthers is what others have on the Node at the beginning.
func firstOfOthers(node *corev1.Node) (events []string) {
	for _, taint := range node.Spec.Taints {
		events = append(events, "others add "+taintText(taint))
	}
	return events
}

func taintText(taint corev1.Taint) string {
	text := taint.Key
	if taint.Value != "" {
		text += "=" + taint.Value
	}
	return text + ":" + string(taint.Effect)
}

// othersDid are the changes of the Node that no agent made.
func othersDid(versions []versionAt) (happened []happening) {
	for i := 1; i < len(versions); i++ {
		before, after := versions[i-1].node, versions[i].node
		var events []string
		switch {
		case before.UID != after.UID:
			events = append([]string{"recreate"}, firstOfOthers(after)...)
		case before.Annotations[taints.RecordAnnotation] != after.Annotations[taints.RecordAnnotation]:
			continue // an agent
		default:
			events = differences(before, after)
		}
		for _, event := range events {
			happened = append(happened, happening{at: versions[i].at, event: event})
		}
	}
	return happened
}

// differences are those of two versions that no agent made.
func differences(before, after *corev1.Node) (events []string) {
	for _, taint := range before.Spec.Taints {
		if !slices.ContainsFunc(after.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			events = append(events, "others remove "+taint.Key+":"+string(taint.Effect))
		}
	}
	for _, taint := range after.Spec.Taints {
		if !slices.ContainsFunc(before.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			events = append(events, "others add "+taintText(taint))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after.Annotations)) {
		if value := after.Annotations[key]; key != noiseAnnotation && value != before.Annotations[key] {
			events = append(events, "others annotate "+key+"="+value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before.Annotations)) {
		if _, isLeft := after.Annotations[key]; !isLeft && key != noiseAnnotation {
			events = append(events, "others annotate "+key+"-")
		}
	}
	return events
}

// agentsDid is what went into the decisions of all processes, and what became of their writes.
func agentsDid(versions []versionAt, all []trace) (happened []happening) {
	for i, one := range all {
		add := func(at time.Duration, format string, args ...any) {
			happened = append(happened, happening{at, one.agent, fmt.Sprintf(format, args...)})
		}
		if i == 0 || all[i-1].agent == one.agent { // "agent NAME" starts another one
			add(one.started, "%s", begins(versions, one))
		}
		slot, keeps := "", ""
		for _, d := range one.decisions {
			if now := []string{"slot unknown", "slot none", "slot held"}[d.Slot]; now != slot {
				slot = now
				add(d.At, "%s", slot)
			}
			if now := map[bool]string{true: "policy present", false: "policy absent"}[d.KeepPolicy]; now != keeps && d.Version != "" {
				keeps = now
				add(d.At, "%s", keeps)
			}
			if d.Written {
				add(d.At, "write lands")
			}
			if d.Refresh {
				add(d.At, "heartbeat")
			}
			for _, o := range d.Observations {
				add(d.At, "%s", sampleText(o))
			}
		}
		for _, at := range unheard(versions, one) {
			add(at, "write lands unheard")
		}
		for _, span := range behind(versions, one) {
			add(span.begin, "watch waits")
			add(span.end, "watch goes on")
		}
	}
	return happened
}

// begins is how a process begins: it may first read a version of the Node that is not the newest.
func begins(versions []versionAt, one trace) string {
	for _, d := range one.decisions {
		if d.Version != "" && isBehind(versions, d) {
			return "restart stale"
		} else if d.Version != "" {
			break
		}
	}
	return "restart"
}

// isBehind reports whether a decision was made by another version than the newest.
func isBehind(versions []versionAt, d decision) bool {
	newest := ""
	for _, v := range versions {
		if v.at < d.At {
			newest = v.node.ResourceVersion
		}
	}
	return newest != d.Version
}

// unheard are when writes of a process landed of which it heard nothing.
func unheard(versions []versionAt, one trace) (at []time.Duration) {
	for i := 1; i < len(versions); i++ {
		before, after := versions[i-1].node, versions[i].node
		if before.Annotations[taints.RecordAnnotation] == after.Annotations[taints.RecordAnnotation] {
			continue
		}
		if !one.runs(versions[i].at) {
			continue
		}
		next := time.Duration(1<<63 - 1)
		if i+1 < len(versions) {
			next = versions[i+1].at + time.Second
		}
		isHeard := slices.ContainsFunc(one.decisions, func(d decision) bool { return d.Written && d.At >= versions[i].at && d.At <= next })
		if !isHeard {
			at = append(at, versions[i].at)
		}
	}
	return at
}

// runs reports whether the process made decisions before and after that.
func (one trace) runs(at time.Duration) bool {
	return len(one.decisions) > 0 && one.started <= at && at <= one.decisions[len(one.decisions)-1].At+time.Second
}

// behind are the times in which a process did not see what others changed.
func behind(versions []versionAt, one trace) (spans []struct{ begin, end time.Duration }) {
	var begin time.Duration
	for _, d := range one.decisions {
		switch isLate := d.Version != "" && isBehind(versions, d); {
		case isLate && begin == 0:
			begin = d.At - 1
		case !isLate && begin != 0:
			spans = append(spans, struct{ begin, end time.Duration }{begin, d.At - 1})
			begin = 0
		}
	}
	if begin != 0 {
		spans = append(spans, struct{ begin, end time.Duration }{begin, one.decisions[len(one.decisions)-1].At})
	}
	return spans
}

// sampleText writes a sample as a scenario has it.
func sampleText(o probes.Observation) string {
	name := map[probes.Condition]string{probes.MemoryPressure: "memory", probes.DiskPressure: "disk", probes.PIDPressure: "pid", probes.NetworkUnavailable: "network"}[o.Condition]
	what := "unknown"
	switch {
	case o.Suspicion:
		what = "suspects"
	case o.Level == probes.OK && o.Hysteresis:
		what = "near"
	case o.Level == probes.OK:
		what = "ok"
	case o.Level == probes.Critical && o.Certain:
		what = "certain critical"
	case o.Level == probes.Critical:
		what = "critical"
	case o.Level == probes.Degraded && o.Certain:
		what = "certain"
	case o.Level == probes.Degraded:
		what = "bad"
	}
	return name + " " + what
}

// explain says whose fault a failure is. It gives the decider, alone, the inputs of the course. If
// that breaks a rule, the shortest such scenario is told. Otherwise the fault is around the decider.
func (s *scene) explain() (isOfDecider bool) {
	text, err := s.course()
	if err != nil {
		s.t.Errorf("the course of %s: %v", s.name, err)
		return false
	}
	said, isOfDecider, err := replay(s.t, text)
	if err != nil {
		s.t.Errorf("the course of %s cannot be given to the decider: %v\n%s\n%s", s.name, err, said, text)
		return false
	}
	if isOfDecider {
		s.t.Logf("the decider alone does wrong in the course of %s; a scenario for agent/decide/testdata:\n%s", s.name, said)
	} else {
		s.t.Logf("the decider alone does nothing wrong in the course of %s (%d events): the fault is around it", s.name, strings.Count(text, "\n"))
	}
	return isOfDecider
}

// replay plays a course in the tests of the decider, which judge it and make it shorter.
func replay(t *testing.T, course string) (said string, fails bool, err error) {
	t.Helper()
	folder, err := os.MkdirTemp("", "taintlet-course-") //nolint:usetesting // it may be called in a cleanup
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // of this test
	path := filepath.Join(folder, "course.txt")
	swaps, err := changes()
	if err == nil {
		err = os.WriteFile(path, []byte(course), 0o600)
	}
	overlay := ""
	if err == nil {
		overlay, err = process.Overlay("../..", folder, swaps...)
	}
	if err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
	defer cancel()
	said, err = process.Output(ctx, "../..", nil, "go", "test", "-count=1", "-overlay="+overlay, "./"+strings.TrimSuffix(decider, "/"), "-run=^TestCourse$", "-course="+path)
	var exit *exec.ExitError
	if err == nil {
		return said, false, nil
	}
	_, scenario, isWrong := strings.Cut(said, "the decider is wrong:\n")
	scenario, _, isWhole := strings.Cut(scenario, "end of the scenario\n")
	if errors.As(err, &exit) && isWrong && isWhole {
		return scenario, true, nil
	}
	return said, false, err
}
