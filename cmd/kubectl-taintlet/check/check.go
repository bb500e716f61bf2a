// Package check finds out whether taintlet is installed well, or can be: it asks the
// API server, changes nothing, and says for each failure what to do and where that
// is explained. Each file has the lines of one group.
package check

import (
	"cmp"
	"context"
	"fmt"
	"io"

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
}

// answer is what a check found, in words.
type answer struct {
	state State
	text  string
}

func ok(format string, args ...any) answer   { return answer{OK, fmt.Sprintf(format, args...)} }
func warn(format string, args ...any) answer { return answer{Warning, fmt.Sprintf(format, args...)} }
func fail(format string, args ...any) answer { return answer{Failed, fmt.Sprintf(format, args...)} }
func skip(format string, args ...any) answer { return answer{Skipped, fmt.Sprintf(format, args...)} }

// group is the checks of one thing, in the order in which they are made.
type group struct {
	name   string
	checks []check
}

// installed are the checks of an installation.
func installed() []group {
	return []group{
		{"cluster", []check{versionCheck(), nodesCheck(), imagesCheck()}},
		{"permissions", []check{grantedCheck(), boundedCheck(), tokenCheck()}},
		{"admission policies", []check{nodesPolicyCheck(), eventsPolicyCheck(), leasesPolicyCheck(), keepObjectsCheck(), keepEffectCheck()}},
		{"agents", []check{daemonSetCheck(), signsCheck(), serviceCheck(), dnsPodsCheck()}},
		{"hosts", []check{hostNetworkCheck(), hostPIDCheck(), kernelCheck(), unknownCheck(), clockCheck(), kubeletCheck()}},
	}
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
}

// Run makes the checks and prints what they found. It reports whether none failed.
func Run(ctx context.Context, o Options) (isWell bool, err error) {
	s, err := newScene(o.Config, o.Namespace)
	if err != nil {
		return false, err
	}
	s.port = cmp.Or(o.Port, DefaultPort)
	groups := installed()
	if o.Pre {
		groups = before()
	}
	report := Report{APIVersion: config.APIVersion, Kind: Kind}
	for _, g := range groups {
		found := Group{Name: g.name}
		for _, c := range g.checks {
			found.Lines = append(found.Lines, c.line(ctx, s))
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
		}
		report.Groups = append(report.Groups, found)
	}
	return report.isWell(), report.print(o.Out, o.Output)
}

// line makes the check.
func (c check) line(ctx context.Context, s *scene) Line {
	found := c.ask(ctx, s)
	line := Line{Name: c.name, State: found.state, Text: clean(found.text)}
	if found.state == Failed || found.state == Warning {
		line.Remedy, line.Link = c.remedy, docs+c.link
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
