package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// figures tell how one rule did on one condition; usage defines each.
type figures struct {
	Condition      probes.Condition `json:"condition"`
	Rule           string           `json:"rule"`
	Changes        int              `json:"changes"`
	ChangesPerHour float64          `json:"changesPerHour"`
	MostInAnHour   int              `json:"mostChangesInAnHour"`
	Tainted        seconds          `json:"taintedSeconds"`
	TaintedPercent float64          `json:"taintedPercent"`
	BadStretches   int              `json:"badStretches"`
	Seen           int              `json:"badStretchesSeen"`
	// The delays are absent when no stretch was seen that began untainted.
	DelayMedian *seconds `json:"delayMedianSeconds,omitempty"`
	DelayMax    *seconds `json:"delayMaxSeconds,omitempty"`
	Missed      seconds  `json:"missedSeconds"`
	False       seconds  `json:"falseSeconds"`
}

// seconds are a duration that is a number of seconds in JSON.
type seconds time.Duration

// MarshalJSON writes the seconds.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(s).Seconds())
}

// String is the duration without trailing zeros, to a hundredth of a second
// below ten seconds and to a tenth above.
func (s seconds) String() string {
	to := 100 * time.Millisecond
	if time.Duration(s) < 10*time.Second {
		to = 10 * time.Millisecond
	}
	text := time.Duration(s).Round(to).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// totals are the figures of a rule over all conditions.
type totals struct {
	Rule         string `json:"rule"`
	Changes      int    `json:"changes"`
	MostInAnHour int    `json:"mostChangesInAnHour"`
}

// report is all that is told of a simulation.
type report struct {
	Input      string    `json:"input"`
	Duration   seconds   `json:"durationSeconds"`
	Conditions []figures `json:"conditions"`
	All        [2]totals `json:"all"`
	Bound      int       `json:"changesAllowedByWriteBudget"`
	Writes     writes    `json:"writes"`
	// FollowUp: samples follow a bad one soon, as those of the agent do.
	FollowUp bool `json:"followUp"`

	heartbeat seconds
	courses   []*course
}

// The rules, as they are shown.
const (
	ruleTaintlet = "taintlet"
	ruleKubelet  = "kubelet"
)

// newReport runs the simulation and works its figures out.
func newReport(cfg *config.Config, in *input, followUp bool) *report {
	out := simulate(cfg, in, followUp)
	r := &report{
		Input: in.name, Duration: seconds(in.duration), courses: out.courses,
		Bound:     bound(cfg.WriteBudget, in.duration),
		Writes:    out.writes,
		FollowUp:  followUp,
		heartbeat: seconds(cfg.Heartbeat.Duration),
	}
	var changes [2][]time.Duration
	for _, c := range out.courses {
		r.Conditions = append(r.Conditions,
			c.figures(ruleTaintlet, c.taintlet, in.duration),
			c.figures(ruleKubelet, c.kubelet, in.duration))
		changes[0] = append(changes[0], c.taintlet.changes()...)
		changes[1] = append(changes[1], c.kubelet.changes()...)
	}
	for i, rule := range []string{ruleTaintlet, ruleKubelet} {
		slices.Sort(changes[i])
		r.All[i] = totals{rule, len(changes[i]), mostWithin(changes[i], time.Hour)}
	}
	return r
}

// bound is how many changes the write budget allows in all: each token of a condition
// pays for a clear or a step up to Critical, and each of these makes one step
// in the other direction possible; a condition may be set without a clear before.
func bound(budget decide.WriteBudget, duration time.Duration) int {
	tokens := budget.Burst + int(duration/budget.Interval.Duration)
	return (2*tokens + 1) * len(config.HostSchema())
}

func (c *course) figures(rule string, taints track, end time.Duration) figures {
	bad := c.input.intervals(end, isBad)
	fine := c.input.intervals(end, func(level int) bool { return level == int(probes.OK) })
	tainted := taints.intervals(end, func(n int) bool { return n > 0 })
	changes := taints.changes()
	f := figures{
		Condition: c.condition, Rule: rule,
		Changes: len(changes), ChangesPerHour: float64(len(changes)) / end.Hours(), MostInAnHour: mostWithin(changes, time.Hour),
		Tainted: seconds(total(tainted)), TaintedPercent: 100 * total(tainted).Seconds() / end.Seconds(),
		BadStretches: len(bad),
		Missed:       seconds(total(bad) - overlap(bad, tainted)),
		False:        seconds(overlap(fine, tainted)),
	}
	delays, covered := detect(bad, tainted)
	f.Seen = len(delays) + covered
	if len(delays) > 0 {
		middle, longest := seconds(median(delays)), seconds(slices.Max(delays))
		f.DelayMedian, f.DelayMax = &middle, &longest
	}
	return f
}

// detect returns how long each bad stretch lasted until the taint was set, of
// those that saw that, and the number of those that began with the taint set.
// A taint that is set just as the stretch ends counts: the opponent heals at
// the very moment that it sees one.
func detect(bad, tainted []interval) (delays []time.Duration, covered int) {
	for _, b := range bad {
		for len(tainted) > 0 && tainted[0].to <= b.from && tainted[0].from < b.from {
			tainted = tainted[1:]
		}
		switch {
		case len(tainted) == 0:
			return delays, covered
		case tainted[0].from < b.from:
			covered++
		case tainted[0].from <= b.to:
			delays = append(delays, tainted[0].from-b.from)
		}
	}
	return delays, covered
}

func (r *report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

func (r *report) writeTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n\n", r.Input, r.Duration)
	rows := [][]string{{"condition", "rule", "changes", "/h", "most/h", "tainted", "", "seen", "delay", "max", "missed", "false"}}
	for _, f := range r.Conditions {
		rows = append(rows, f.cells())
	}
	b.WriteString(align(rows, 2))
	fmt.Fprintln(&b)
	for _, t := range r.All {
		fmt.Fprintf(&b, "All: %s %d changes, at most %d within an hour.\n", t.Rule, t.Changes, t.MostInAnHour)
	}
	fmt.Fprintf(&b, "The write budget allows taintlet %d changes in this time.\n", r.Bound)
	fmt.Fprintf(&b, "Node writes of taintlet: %d (taints and record), %d of the record alone, and %d of the status (%s).\n", r.Writes.Node, r.Writes.Told, r.Writes.Status, r.heartbeats())
	if !r.FollowUp {
		fmt.Fprintln(&b, "Samples: once a period only (--follow-up=false). The agent also samples again soon after a bad sample, and so sees more.")
	}
	fmt.Fprintln(&b, "--help tells what each figure means.")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}

func (r *report) heartbeats() string {
	if r.heartbeat == 0 {
		return "conditions, no heartbeat"
	}
	return "conditions, heartbeat every " + r.heartbeat.String()
}

func (f figures) cells() []string {
	delay, longest := "-", "-"
	if f.DelayMedian != nil {
		delay, longest = f.DelayMedian.String(), f.DelayMax.String()
	}
	return []string{
		string(f.Condition), f.Rule,
		fmt.Sprint(f.Changes), fmt.Sprintf("%.1f", f.ChangesPerHour), fmt.Sprint(f.MostInAnHour),
		f.Tainted.String(), fmt.Sprintf("%.1f %%", f.TaintedPercent),
		fmt.Sprintf("%d/%d", f.Seen, f.BadStretches), delay, longest,
		f.Missed.String(), f.False.String(),
	}
}

// align lays rows out in columns: the first ones to the left, as they are
// words, the others to the right.
func align(rows [][]string, words int) string {
	width := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, cell := range cells {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, cells := range rows {
		for i, cell := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			switch {
			case i < words:
				b.WriteString(cell + pad + "  ")
			case i == len(cells)-1:
				b.WriteString(pad + cell)
			default:
				b.WriteString(pad + cell + "  ")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
