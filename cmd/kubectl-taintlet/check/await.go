package check

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// retryAfter is the time between two rounds of checks while one waits.
const retryAfter = 3 * time.Second

// await makes the checks again until all is settled, or the context ends. Then it
// returns what was found last. An API server that does not answer is asked again.
func (o Options) await(ctx context.Context, report Report, err error) (Report, error) {
	told := ""
	for err != nil || !report.isSettled() {
		if reason := reason(report, err); reason != told && ctx.Err() == nil {
			told = reason
			fmt.Fprintf(o.Err, "waiting: %s\n", clean(reason))
		}
		select {
		case <-ctx.Done():
			return report, err
		case <-time.After(retryAfter):
		}
		again, errAgain := o.make(ctx)
		if ctx.Err() == nil {
			report, err = again, errAgain
		}
	}
	return report, nil
}

// rolledOut are the checks whose warning says that a roll-out goes on.
func rolledOut() []string { return []string{"images", "daemonset"} }

// isSettled reports whether nothing failed, and no roll-out goes on.
func (r Report) isSettled() bool { return len(r.unsettled()) == 0 }

func (r Report) unsettled() []Line {
	var lines []Line
	for _, g := range r.Groups {
		for _, line := range g.Lines {
			if line.State == Failed || line.State == Warning && slices.Contains(rolledOut(), line.Name) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// reason says in one line what is waited for.
func reason(r Report, err error) string {
	if err != nil {
		return err.Error()
	}
	lines := r.unsettled()
	if len(lines) == 1 {
		return lines[0].Text
	}
	return fmt.Sprintf("%s, and %d more", lines[0].Text, len(lines)-1)
}
