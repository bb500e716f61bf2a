package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// Run makes the checks and prints their results. It reports whether none failed. An API server that
// does not answer is an error.
func Run(ctx context.Context, o Options) (isWell bool, err error) {
	report, err := o.make(ctx)
	if o.Wait {
		report, err = o.await(ctx, report, err)
	}
	if err != nil {
		return false, err
	}
	return len(report.unsettled(o.Wait)) == 0, report.print(o.Out, o.Output)
}

func (o Options) make(ctx context.Context) (report Report, err error) {
	s, err := newScene(ctx, o)
	if err != nil {
		return report, err
	}
	report = Report{TypeMeta: metav1.TypeMeta{APIVersion: config.APIVersion, Kind: Kind}}
	for _, g := range groups() {
		for _, c := range g.checks {
			if report.Stopped || c.isBefore != o.Pre && !c.isAlways {
				continue
			}
			for _, line := range c.lines(ctx, s) {
				line.Group, line.Name = g.name, c.name
				report.Lines = append(report.Lines, line)
				report.Stopped = c.isBase && !o.Pre && line.Severity == Failed
			}
			if ctx.Err() != nil {
				return report, ctx.Err()
			}
		}
	}
	return report, nil
}

// maxOfACheck is how many Findings of one check are shown.
const maxOfACheck = 5

func (c check) lines(ctx context.Context, s *scene) (lines []Line) {
	for _, f := range s.report.Findings {
		if slices.Contains(c.codes, f.Code) {
			f.Text = strings.TrimPrefix(f.Node+": "+f.Text, ": ")
			lines = append(lines, c.complete(Line{Finding: f}))
		}
	}
	if len(lines) > maxOfACheck {
		lines = append(lines[:maxOfACheck], line(lines[0].Severity, "and %d more: kubectl taintlet status -o json has all", len(lines)-maxOfACheck))
	}
	if len(lines) == 0 {
		lines = []Line{c.complete(c.answer(ctx, s))}
	}
	return lines
}

func (c check) answer(ctx context.Context, s *scene) (answer Line) {
	whether, err := cmp.Or(c.whether, c.name), c.hindered(s)
	switch {
	case err != nil:
	case len(s.said[c.name]) > 0:
		return line(Warning, "%s: %s", c.said, terminal.Listed(s.said[c.name]))
	case c.ask != nil:
		answer, err = c.ask(s, ctx)
	}
	var why untold
	switch {
	case errors.As(err, &why):
		return line(Skipped, "%s: %s", whether, why)
	case apierrors.IsForbidden(err):
		return line(Skipped, "%s: your account is not allowed to check this: %v", whether, err)
	case err != nil:
		return line(Failed, "%s could not be checked: %v", whether, err).but("try again; if this persists, check the API server")
	case answer.Severity == "":
		return line(OK, "%s", c.fine)
	}
	return answer
}

// hindered says why the scene lacks what the check needs.
func (c check) hindered(s *scene) error {
	unread := slices.IndexFunc(s.report.Unread, func(u installation.Unread) bool { return u.Part == c.part })
	switch isOfNodes := len(c.codes) > 0 || c.part != "" || c.said != ""; {
	case isOfNodes && s.readErr != nil:
		return untold(s.readErr.Error())
	case unread >= 0:
		return untold(c.part + " could not be read: " + s.report.Unread[unread].Why)
	case c.ofConfig && s.inUse == nil:
		return untold("the configuration is not known")
	case c.ofAgents && s.report.Summary.Agents == 0:
		return untold("there are no agents")
	}
	return nil
}

// complete adds the check's own texts to a line, and makes texts from other programs safe for a
// terminal.
func (c check) complete(line Line) Line {
	line.Text = clean(line.Text)
	if line.Severity == Failed || line.Severity == Warning {
		line.Remedy, line.Link = clean(cmp.Or(line.Remedy, c.remedy)), docs+c.link
	}
	return line
}

// retryAfter is the time between two rounds of checks while one waits.
const retryAfter = 3 * time.Second

// await makes the checks again until all is settled, or the context ends. Then it
// returns what was found last. An API server that does not answer is asked again.
func (o Options) await(ctx context.Context, report Report, err error) (Report, error) {
	told := ""
	for err != nil || len(report.unsettled(true)) > 0 {
		reason := fmt.Sprint(err)
		if lines := report.unsettled(true); err == nil {
			reason = strings.TrimSuffix(fmt.Sprintf("%s, and %d more", lines[0].Text, len(lines)-1), ", and 0 more")
		}
		if reason != told && ctx.Err() == nil {
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

// unsettled are the lines that failed, and where it is waited for the end of a roll-out, of the
// agents or of their configuration, those whose warning says that it goes on.
func (r Report) unsettled(isWaiting bool) []Line {
	return slices.DeleteFunc(slices.Clone(r.Lines), func(l Line) bool {
		goesOn := l.Severity == Warning && slices.Contains([]string{"images", "daemonset", "in-force"}, l.Name)
		return l.Severity != Failed && (!isWaiting || !goesOn)
	})
}

func (r Report) print(w io.Writer, format string) error {
	if isPrinted, err := status.Print(w, format, &r); isPrinted {
		return err
	}
	signs := map[status.Severity]string{OK: "√", Warning: "‼", Failed: "×", Skipped: "-"}
	var text strings.Builder
	group, counts := "", map[status.Severity]int{}
	for _, line := range r.Lines {
		if line.Group != group {
			if group != "" {
				text.WriteString("\n")
			}
			group = line.Group
			fmt.Fprintf(&text, "%s\n%s\n", group, strings.Repeat("-", len(group)))
		}
		counts[line.Severity]++
		fmt.Fprintf(&text, "%s %s\n", signs[line.Severity], line.Text)
		if line.Remedy != "" {
			for _, detail := range []string{line.Remedy, line.Command, line.Link} {
				if detail != "" {
					fmt.Fprintf(&text, "    %s\n", detail)
				}
			}
		}
	}
	fmt.Fprintf(&text, "\n%d passed", counts[OK])
	for _, other := range []struct {
		severity status.Severity
		word     string
	}{{Warning, "with a warning"}, {Failed, "failed"}, {Skipped, "not checked"}} {
		if counts[other.severity] > 0 {
			fmt.Fprintf(&text, ", %d %s", counts[other.severity], other.word)
		}
	}
	if r.Stopped {
		text.WriteString("; nothing else can be checked without it")
	}
	_, err := fmt.Fprintln(w, text.String())
	return err
}
