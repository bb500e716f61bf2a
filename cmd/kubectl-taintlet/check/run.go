package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/findings"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
)

// Run makes the checks and prints what they found. It reports whether none failed. An
// API server that does not answer is an error.
func Run(ctx context.Context, o Options) (isWell bool, err error) {
	report, err := o.make(ctx)
	if o.Wait {
		report, err = o.await(ctx, report, err)
	}
	if err != nil {
		return false, err
	}
	isWell = report.isWell() && (!o.Wait || report.isSettled())
	return isWell, report.print(o.Out, o.Output)
}

// make makes the checks once.
func (o Options) make(ctx context.Context) (report Report, err error) {
	s, err := newScene(o.Config, o.Namespace)
	if err != nil {
		return report, err
	}
	s.port, s.program = cmp.Or(o.Port, installation.DefaultPort), o.Version
	if err := s.reach(ctx); err != nil {
		return report, err
	}
	groups := installed()
	if o.Pre {
		groups = before()
	}
	report = Report{APIVersion: config.APIVersion, Kind: Kind}
	for _, g := range groups {
		found := Group{Name: g.name}
		for _, c := range g.checks {
			lines := c.lines(ctx, s)
			found.Lines = append(found.Lines, lines...)
			if ctx.Err() != nil {
				return report, ctx.Err()
			}
			if report.Stopped = c.isBase && lines[0].State == Failed; report.Stopped {
				break
			}
		}
		report.Groups = append(report.Groups, found)
		if report.Stopped {
			break
		}
	}
	return report, nil
}

// reach asks for the version of the API server. Nothing else is asked of one that does
// not answer, or does not know who asks.
func (s *scene) reach(ctx context.Context) error {
	data, err := s.me.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(data, &s.version)
	}
	var answered apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept who you are: %w", s.config.Host, err)
	case err != nil && !errors.As(err, &answered):
		return fmt.Errorf("the API server %s does not answer: %w", s.config.Host, err)
	}
	s.versionErr = err
	return nil
}

// maxOfACheck is how many Findings of one check are shown.
const maxOfACheck = 5

// lines makes the check: a line for each Finding that answers it, or one for its answer.
func (c check) lines(ctx context.Context, s *scene) (lines []Line) {
	unread := ""
	if len(c.codes) > 0 || c.part != "" {
		all, err := s.allNodes(ctx)
		if err != nil {
			return []Line{c.line(skip("%s: %v", c.name, err))}
		}
		for _, f := range all.report.Findings {
			if slices.Contains(c.codes, f.Code) {
				lines = append(lines, c.finding(f))
			}
		}
		if at := slices.IndexFunc(all.report.Unread, func(u installation.Unread) bool { return u.Part == c.part }); at >= 0 {
			unread = all.report.Unread[at].Why
		}
	}
	switch {
	case len(lines) > maxOfACheck:
		more := Line{Name: c.name, State: lines[0].State, Text: fmt.Sprintf("and %d more: kubectl taintlet status -o json has all", len(lines)-maxOfACheck)}
		return append(lines[:maxOfACheck], more)
	case len(lines) > 0:
		return lines
	case unread != "":
		return []Line{c.line(skip("%s: %s could not be read: %s", c.name, c.part, unread))}
	}
	return []Line{c.line(c.ask(s, ctx))}
}

// line is that of an answer.
func (c check) line(found answer) Line {
	line := Line{Name: c.name, State: found.state, Text: clean(found.text)}
	if found.state == Failed || found.state == Warning {
		line.Remedy, line.Link = clean(cmp.Or(found.remedy, c.remedy)), docs+c.link
	}
	return line
}

// finding is the line of a Finding.
func (c check) finding(f findings.Finding) Line {
	found := answer{state: Warning, text: f.Text}
	if f.Severity == findings.Failure {
		found.state = Failed
	}
	if f.Node != "" {
		found.text = f.Node + ": " + f.Text
	}
	line := c.line(found)
	line.Code, line.Node, line.Command = f.Code, f.Node, f.Command
	return line
}

func (r Report) isWell() bool {
	for _, g := range r.Groups {
		for _, line := range g.Lines {
			if line.State == Failed {
				return false
			}
		}
	}
	return true
}

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

// rolledOut are the checks whose warning says that a roll-out goes on, of the agents or of
// their configuration.
func rolledOut() []string { return []string{"images", "daemonset", "in-force"} }

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
