package consumers

import (
	"fmt"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes/trend"
)

// Text tells the finding to a person: who, how much, how fast, since when. It is empty where
// nothing is known.
func (f Finding) Text() string {
	var text string
	switch f.Certainty {
	case NotRead:
		return ""
	case Named:
		text = f.namedText()
	case Many:
		text = "no single consumer: nobody took a third of the " + f.text(f.Taken) + " that were taken " + f.whenText()
	case Little:
		text = "nobody took much " + f.whenText()
	case Unseen:
		if !f.Since.IsZero() {
			text = "not known who took it: it was taken before the processes were first read"
		}
	}
	if f.Unowned > 0 && f.Unowned >= f.Taken/3 && f.Certainty > Little {
		text = join(text, "shared memory and tmpfs, which have no owner, grew by "+f.text(f.Unowned))
	}
	if f.Largest.Group.Kind != 0 && f.Largest.Group != f.Takers[0].Group {
		text = join(text, "the largest is "+f.Largest.nameText()+" with "+f.text(f.Largest.Holds))
	}
	if f.First > 0 {
		text = join(text, fmt.Sprintf("of the first %d processes", f.First))
	}
	return text
}

// namedText is that of one taker, or two.
func (f Finding) namedText() string {
	first, second := f.Takers[0], f.Takers[1]
	text := first.nameText() + f.tookText(first)
	if second.Group.Kind != 0 {
		return text + " and " + second.nameText() + f.tookText(second) + " " + f.whenText()
	}
	text += " " + f.whenText()
	switch {
	case first.IsGone:
		return text + ", and is gone"
	case f.Resource == Memory:
		return text + ", and has " + f.text(first.Holds)
	}
	return text + ", and has " + fmt.Sprintf("%.0f", first.Holds)
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
	switch {
	case f.IsPartial:
		return " took at least " + f.text(c.Took)
	case f.Resource == Memory && c.Processes > 1:
		return " took up to " + f.text(c.Took)
	}
	return " took " + f.text(c.Took)
}

// whenText says how fast it was taken, and since when: "in 41 s since 08:12 UTC".
func (f Finding) whenText() string {
	format, since := "15:04 UTC", f.Since.UTC()
	if f.At.Sub(since) >= 12*time.Hour {
		format = "2006-01-02 15:04 UTC"
	}
	return "in " + trend.TimeText(f.In) + " since " + since.Format(format)
}

// text writes an amount of the resource.
func (f Finding) text(amount float64) string {
	if f.Resource == Tasks {
		return fmt.Sprintf("%.0f tasks", amount)
	}
	return trend.BytesText(amount)
}

func join(parts ...string) string {
	said := parts[:0]
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, "; ")
}
