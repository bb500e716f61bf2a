package consumers

import (
	"fmt"

	"github.com/taintlet/taintlet/probes/trend"
)

// Text is the finding in one clause: the group, the amount and the time. It is empty if nothing is
// known.
func (f Finding) Text() string {
	var text string
	in := "in " + trend.TimeText(f.In)
	switch {
	case f.Certainty == NotRead:
		return ""
	case f.Certainty == Named:
		text = f.namedText(in)
	case f.Certainty == Many && f.Unowned > 0 && f.Unowned >= f.Taken/3:
		text = "shared memory and tmpfs, which have no owner, grew by " + f.text(f.Unowned) + " " + in + ", and hold " + f.text(f.Shared)
	case f.Certainty == Many:
		text = f.withLargest("no pod or program took a third of the " + f.text(f.Taken) + " taken " + in)
	default:
		text = f.withLargest("")
	}
	if f.First > 0 {
		text += fmt.Sprintf(" (of the first %d processes)", f.First)
	}
	return text
}

// withLargest appends the group that holds most, or what has no owner where that is more.
func (f Finding) withLargest(text string) string {
	if text != "" && (f.Largest.Group.Kind != 0 || f.Shared > 0) {
		text += ", "
	}
	switch {
	case f.Shared > f.Largest.Holds:
		return text + "shared memory and tmpfs, which have no owner, hold " + f.text(f.Shared)
	case f.Largest.Group.Kind == 0:
		return text
	}
	return text + "the largest is " + f.Largest.nameText() + " with " + f.text(f.Largest.Holds)
}

// namedText is that of one taker, or two.
func (f Finding) namedText(in string) string {
	first, second := f.Takers[0], f.Takers[1]
	text := first.nameText() + f.tookText(first)
	switch {
	case second.Group.Kind != 0:
		return text + " and " + second.nameText() + f.tookText(second) + " " + in
	case first.IsGone:
		return text + " " + in + ", and is gone"
	case f.Resource == Memory:
		return text + " " + in + ", and has " + f.text(first.Holds)
	}
	return text + " " + in + ", and has " + fmt.Sprintf("%.0f", first.Holds)
}

// nameText names a consumer: "pod 7c0f… (java)".
func (c Consumer) nameText() string {
	if c.Command == "" || c.Group.Kind == KindProcess || c.Group.Kind == KindKernel {
		return c.Group.String()
	}
	return c.Group.String() + " (" + c.Command + ")"
}

// tookText says how much a consumer took. Several processes may share pages of memory.
func (f Finding) tookText(c Consumer) string {
	isShared := f.Resource == Memory && c.Processes > 1
	switch {
	case f.IsPartial && isShared:
		return " took about " + f.text(c.Took)
	case f.IsPartial:
		return " took at least " + f.text(c.Took)
	case isShared:
		return " took up to " + f.text(c.Took)
	}
	return " took " + f.text(c.Took)
}

// text writes an amount of the resource.
func (f Finding) text(amount float64) string {
	if f.Resource == Tasks {
		return fmt.Sprintf("%.0f tasks", amount)
	}
	return trend.BytesText(amount)
}
