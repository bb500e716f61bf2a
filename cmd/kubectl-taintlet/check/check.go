// Package check finds out whether the installation works, or would: it asks the
// API server, changes nothing, and says for each failure what to do and where that
// is explained. Each file has the lines of one group.
package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
)

// State is what a check found.
type State string

// The States.
const (
	OK      State = "OK"
	Warning State = "Warning" // works, but not as well as it could
	Failed  State = "Failed"
	Skipped State = "Skipped" // nobody can tell, for the reason given
)

// Line is the answer of one check.
type Line struct {
	// Name tells the check from all others.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Text says what was found.
	Text string `json:"text"`
	// Remedy says what to do; Link where that is explained.
	Remedy string `json:"remedy,omitempty"`
	Link   string `json:"link,omitempty"`
}

// Group is some checks about one thing.
type Group struct {
	Name  string `json:"name"`
	Lines []Line `json:"lines"`
}

// Report is what all checks found. Fields are only ever added within a version.
type Report struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Groups     []Group `json:"groups"`
	// Stopped: the last check failed, and without it the others tell nothing. They
	// were not made.
	Stopped bool `json:"stopped,omitempty"`
}

// Kind is the kind of a Report as JSON.
const Kind = "CheckReport"

// docs is where the documentation is. A Link is a file in it and a heading.
const docs = "https://github.com/taintlet/taintlet/blob/main/"

// check is one check: what it asks for, and what to do when it fails.
type check struct {
	name   string
	remedy string
	link   string
	ask    func(context.Context, *scene) answer
	// isBase: where it fails, none of those that follow can tell anything.
	isBase bool
}

// answer is what a check found, in words.
type answer struct {
	state State
	text  string
	// remedy is what to do about this answer; empty: that of the check.
	remedy string
}

func ok(format string, args ...any) answer { return answer{OK, fmt.Sprintf(format, args...), ""} }
func warn(format string, args ...any) answer {
	return answer{Warning, fmt.Sprintf(format, args...), ""}
}
func fail(format string, args ...any) answer { return answer{Failed, fmt.Sprintf(format, args...), ""} }
func skip(format string, args ...any) answer {
	return answer{Skipped, fmt.Sprintf(format, args...), ""}
}

// but returns the answer with a remedy of its own.
func (a answer) but(remedy string) answer {
	a.remedy = remedy
	return a
}

// unread is the answer of a check that could not read what it is about. Who lacks a
// permission is told so, and not how to mend what may be well.
func unread(what string, err error) answer {
	if apierrors.IsForbidden(err) {
		return skip("%s: you may not read that: %v", what, err)
	}
	return fail("%s cannot be read: %v", what, err).but("try again; if it stays so, look at the API server")
}

// group is the checks of one thing, in the order in which they are made.
type group struct {
	name   string
	checks []check
}

// installed are the checks of an installation.
func installed() []group {
	return []group{
		{"cluster", []check{versionCheck(), base(nodesCheck()), imagesCheck(), programCheck()}},
		{"permissions", []check{grantedCheck(), boundedCheck(), tokenCheck()}},
		{"admission policies", []check{nodesPolicyCheck(), eventsPolicyCheck(), leasesPolicyCheck(), rulesAllowedCheck(), unchangedCheck(), keepObjectsCheck(), keepEffectCheck()}},
		{"configuration", []check{configurationCheck(), rulesCheck(), daemonSetsCheck(), autoscalersCheck(), slotsCheck()}},
		{"agents", []check{daemonSetCheck(), signsCheck(), restartsCheck(), oneEachCheck(), serviceCheck(), dnsPodsCheck()}},
		{"hosts", []check{hostNetworkCheck(), hostPIDCheck(), kernelCheck(), unknownCheck(), clockCheck(), kubeletCheck()}},
	}
}

// base returns the check as one without which the others tell nothing.
func base(c check) check {
	c.isBase = true
	return c
}

// before are the checks that need no installation.
func before() []group {
	return []group{
		{"cluster", []check{versionCheck(), nodesCheck(), validatingCheck(), mutatingCheck(), kernelCheck(), portCheck()}},
		{"installation", []check{creatableCheck(), grantableCheck(), namespaceCheck()}},
	}
}

// Options say what is checked.
type Options struct {
	Config *rest.Config
	Out    io.Writer
	// Output is empty for text, or "json".
	Output string
	// Namespace is that of the installation.
	Namespace string
	// Pre checks whether taintlet can be installed.
	Pre bool
	// Port is the port of the hosts where the agents are to listen. 0: DefaultPort.
	Port int
	// Version is that of this program.
	Version string
	// Wait makes the checks again until none fails and the roll-out is over, or the
	// context ends. Err is told what is waited for.
	Wait bool
	Err  io.Writer
}

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
	s.port, s.program = cmp.Or(o.Port, DefaultPort), o.Version
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
			line := c.line(ctx, s)
			found.Lines = append(found.Lines, line)
			if ctx.Err() != nil {
				return report, ctx.Err()
			}
			if report.Stopped = c.isBase && line.State == Failed; report.Stopped {
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

// line makes the check.
func (c check) line(ctx context.Context, s *scene) Line {
	found := c.ask(ctx, s)
	line := Line{Name: c.name, State: found.state, Text: clean(found.text)}
	if found.state == Failed || found.state == Warning {
		line.Remedy, line.Link = clean(cmp.Or(found.remedy, c.remedy)), docs+c.link
	}
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
