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

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes/pid"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/pace"
)

// Verb returns the verb.
func Verb() *cobra.Command {
	var o Options
	var cluster command.Cluster
	var timeout time.Duration
	c := &cobra.Command{
		Use: "check", Short: "Check an installation, or with --pre the requirements", Args: cobra.NoArgs,
		Long: `Check an installation, or with --pre the requirements.

It changes nothing: writes are dry runs. Some checks impersonate the agents' account.

√ means good, ‼ works but could be better, × must be fixed, and - could not be checked. Below each × and ‼
are a remedy and a link to the documentation.

Exit code 3: a check failed. Exit code 1: the API server does not answer or refuses you.`,
		Example: `  # Can taintlet be installed here?
  kubectl taintlet check --pre
  # Can it be installed with another port?
  kubectl taintlet check --pre --port=14808
  # Does the installation work?
  kubectl taintlet check
  # In a script, after an installation or an upgrade
  kubectl taintlet check --wait --timeout=5m
  # In another namespace
  kubectl taintlet check --namespace=monitoring`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Port < 1 || o.Port > 65535 {
				return command.Usagef("--port %d: must be between 1 and 65535", o.Port)
			}
			if cluster.Namespace == "" {
				return command.Usagef("--namespace: specify the namespace of the agents")
			}
			if o.Config, err = cluster.RestConfig(); err != nil {
				return err
			}
			o.Namespace, o.Out, o.Err, o.Version = cluster.Namespace, c.OutOrStdout(), c.ErrOrStderr(), command.Version()
			ctx, cancel := command.Within(c.Context(), timeout)
			defer cancel()
			isWell, err := Run(ctx, o)
			if err == nil && !isWell {
				return command.ErrNotWell
			}
			return err
		},
	}
	flags := c.Flags()
	flags.BoolVar(&o.Pre, "pre", false, "check the requirements before an installation")
	flags.IntVar(&o.Port, "port", installation.DefaultPort, "`port` on which the agents will listen; only with --pre")
	flags.BoolVar(&o.Wait, "wait", false, "repeat the checks until nothing fails and all agents run with the newest configuration")
	flags.DurationVar(&timeout, "timeout", 0, "how long to wait with --wait (default: no limit)")
	command.AddChoice(c, &o.Output, "output", "o", "output `format`: text, or json, yaml or jsonpath=TEMPLATE as in kubectl", append([]string{"text"}, status.Formats()...)...)
	cluster.Add(flags)
	return c
}

// retryAfter is the time between two rounds of checks while one waits.
const retryAfter = 3 * time.Second

// Run makes the checks and prints their results. It reports whether none failed. An API server that
// does not answer is an error. With Options.Wait it makes the checks again until all is settled, or
// until the context ends. Then the newest results count.
func Run(ctx context.Context, o Options) (isWell bool, err error) {
	report, err := o.make(ctx)
	for told := ""; o.Wait && (err != nil || len(report.unsettled(true)) > 0); {
		reason := fmt.Sprint(err)
		if lines := report.unsettled(true); err == nil {
			reason = strings.TrimSuffix(fmt.Sprintf("%s, and %d more", lines[0].Text, len(lines)-1), ", and 0 more")
		}
		if reason != told && ctx.Err() == nil {
			told = reason
			fmt.Fprintf(o.Err, "waiting: %s\n", clean(reason))
		}
		if !pace.Sleep(ctx, retryAfter) {
			break
		}
		if again, errAgain := o.make(ctx); ctx.Err() == nil {
			report, err = again, errAgain
		}
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
	case c.ofConfig && s.fleet.InUse == nil:
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
		for _, detail := range []string{line.Remedy, line.Command, line.Link} {
			if detail != "" {
				fmt.Fprintf(&text, "    %s\n", detail)
			}
		}
	}
	fmt.Fprintf(&text, "\n%d passed", counts[OK])
	for i, severity := range []status.Severity{Warning, Failed, Skipped} {
		if counts[severity] > 0 {
			fmt.Fprintf(&text, ", %d %s", counts[severity], []string{"with a warning", "failed", "not checked"}[i])
		}
	}
	if r.Stopped {
		text.WriteString("; nothing else can be checked without it")
	}
	_, err := fmt.Fprintln(w, text.String())
	return err
}

const (
	account = installation.Account
	// nodeExtra is what the API server adds to whoever has a pod's token.
	nodeExtra = "authentication.kubernetes.io/node-name"
	// tellsWhoAsks is the field manager of dry runs that do not act as an agent.
	tellsWhoAsks = "taintlet-check"
)

// scene is the data that the checks share, read before the first check.
type scene struct {
	Options
	me *installation.Client

	version    string
	versionErr error

	// readErr says why the Nodes and what is installed could not be read.
	readErr error
	names   []string
	fleet   *status.Fleet
	report  status.Report
	// untainted is a Node without the taint with which the policy that keeps taints is tried;
	// empty: none.
	untainted string
	// overridden are the configurations of the overrides that apply to a Node.
	overridden map[*config.Config]bool
	// said are Nodes with a remark about each, by the names of checks.
	said map[string][]string
}

func newScene(ctx context.Context, o Options) (*scene, error) {
	me, err := installation.NewClient(o.Config)
	if err != nil {
		return nil, err
	}
	o.Port = cmp.Or(o.Port, installation.DefaultPort)
	s := &scene{Options: o, me: me, overridden: map[*config.Config]bool{}, said: map[string][]string{}}
	s.fleet = status.NewFleet(status.Options{Version: o.Version, Namespace: o.Namespace})
	if err := s.reach(ctx); err != nil {
		return nil, err
	}
	s.readErr = s.read(ctx)
	return s, ctx.Err()
}

// reach asks for the version of the API server. If the server does not answer, or does not
// authenticate the user, no other check runs.
func (s *scene) reach(ctx context.Context) error {
	version, err := s.me.Discovery().ServerVersionWithContext(ctx)
	if err == nil {
		s.version = version.GitVersion
	}
	var answered apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept your credentials: %w", s.Config.Host, err)
	case err != nil && !errors.As(err, &answered):
		return fmt.Errorf("the API server %s does not answer: %w", s.Config.Host, err)
	}
	s.versionErr = err
	return nil
}

// errNoNodes says that a check needs Nodes.
var errNoNodes = errors.New("the cluster has no Nodes")

func (s *scene) read(ctx context.Context) error {
	if err := s.fleet.Read(ctx, s.me, s.add); err != nil {
		return err
	}
	if len(s.names) == 0 {
		return errNoNodes
	}
	s.report = s.fleet.Report(s.me.Now())
	return nil
}

func (s *scene) add(node *taints.Node) {
	name := strings.Clone(node.Name)
	s.names = append(s.names, name)
	say := func(check, format string, args ...any) {
		s.said[check] = append(s.said[check], name+fmt.Sprintf(format, args...))
	}
	if s.fleet.InUse != nil && s.fleet.InUse.For(node.Labels) != s.fleet.InUse {
		s.overridden[s.fleet.InUse.For(node.Labels)] = true
	}
	if node.OS == "linux" && isOldKernel(node.Kernel) {
		say("kernel", " (%s)", node.Kernel)
	}
	for _, condition := range s.fleet.Policy.Conditions {
		ours := node.Condition(decide.ConditionType(condition.Name))
		if ours == nil {
			continue
		}
		if ours.Status == taints.ConditionUnknown && ours.Reason != describe.ReasonBraked {
			say("unknown", " (%s: %s)", ours.Type, ours.Reason)
		}
		if strings.Contains(ours.Message, pid.OtherNamespace) {
			say("host-pid", "")
		}
		theirs := node.Condition(string(condition.Name))
		if theirs != nil && theirs.Status == taints.ConditionTrue && ours.Status == taints.ConditionFalse {
			say("kubelet", " (%s)", condition.Name)
		}
	}
	if s.untainted == "" && !node.Has(keptPair()) {
		s.untainted = name
	}
}

// isOldKernel reports whether Linux is older than 4.20, which brought PSI. An unreadable version
// does not count as old.
func isOldKernel(release string) bool {
	found, err := version.ParseGeneric(release)
	return err == nil && found.LessThan(version.MajorMinor(4, 20))
}

func (s *scene) agents() (*appsv1.DaemonSet, error) {
	for _, d := range s.fleet.Installation.DaemonSets {
		if d.Name == account {
			return d, nil
		}
	}
	return nil, untold("the DaemonSet " + account + " does not exist, or cannot be read")
}
