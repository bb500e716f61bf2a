package status

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/findings"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

func cleaned(unread []installation.Unread) []installation.Unread {
	var clean []installation.Unread
	for _, u := range unread {
		clean = append(clean, installation.Unread{Part: u.Part, Why: terminal.Clean(u.Why, maxTaint)})
	}
	return clean
}

func daemonSetOf(d *appsv1.DaemonSet) DaemonSet {
	s := d.Status
	return DaemonSet{
		Namespace: terminal.Clean(d.Namespace, maxName), Name: terminal.Clean(d.Name, maxName),
		Desired: int(s.DesiredNumberScheduled), Ready: int(s.NumberReady), Missing: int(max(0, s.DesiredNumberScheduled-s.CurrentNumberScheduled)),
		Image: terminal.Clean(installation.Agent(&d.Spec.Template.Spec).Image, maxTaint),
	}
}

// podsOf are the agents' pods on a Node.
func podsOf(pods []*corev1.Pod) []Pod {
	var all []Pod
	for _, p := range pods {
		isReady, since := installation.ReadySince(p)
		pod := Pod{Name: terminal.Clean(p.Name, maxName), Version: terminal.Clean(installation.VersionOf(installation.Agent(&p.Spec).Image), maxWord), Ready: isReady}
		if !since.IsZero() {
			pod.Since = &since
		}
		if c := installation.AgentStatus(p); c != nil {
			pod.Restarts = int(c.RestartCount)
		}
		all = append(all, pod)
	}
	return all
}

// installedLines are the lines about what is installed.
func (r Report) installedLines() []string {
	var lines []string
	for _, d := range r.DaemonSets {
		line := fmt.Sprintf("DaemonSet %s/%s: %d desired, %d ready", d.Namespace, d.Name, d.Desired, d.Ready)
		if d.Missing > 0 {
			line += fmt.Sprintf(", %d missing", d.Missing)
		}
		if version := installation.VersionOf(d.Image); version != "" {
			line += "; version " + version
		}
		lines = append(lines, line)
	}
	if len(r.Slots) > 0 {
		lines = append(lines, r.slotsLine())
	}
	if len(r.Unread) > 0 {
		parts := make([]string, len(r.Unread))
		for i, u := range r.Unread {
			parts[i] = fmt.Sprintf("%s (%s)", u.Part, u.Why)
		}
		lines = append(lines, "not read: "+strings.Join(parts, ", "))
	}
	return lines
}

// slotsLine says which Nodes hold the eviction slots.
func (r Report) slotsLine() string {
	free := 0
	var held []string
	for _, s := range r.Slots {
		switch {
		case s.Holder == "":
			free++
		case s.CooldownUntil != nil:
			held = append(held, fmt.Sprintf("%s holds %s, cooldown until %s", s.Holder, s.Name, s.CooldownUntil.Format("15:04 UTC")))
		case s.RenewedAt == nil:
			held = append(held, s.Holder+" holds "+s.Name)
		default:
			held = append(held, fmt.Sprintf("%s holds %s, renewed %s ago", s.Holder, s.Name, terminal.Span(max(0, r.Time.Sub(*s.RenewedAt)))))
		}
	}
	return strings.Join(append([]string{fmt.Sprintf("eviction slots: %d, %d free", len(r.Slots), free)}, held...), "; ")
}

// maxOfACode is how many Findings of one kind are shown.
const maxOfACode = 5

// findingLines are the Findings, each with the next command. Commands are not wrapped, so
// that they can be copied.
func (r Report) findingLines(f Format) []string {
	var lines []string
	shown, all := map[findings.Code]int{}, map[findings.Code]int{}
	for _, p := range r.Findings {
		all[p.Code]++
	}
	for _, p := range r.Findings {
		shown[p.Code]++
		switch count := shown[p.Code]; {
		case count == maxOfACode+1:
			lines = append(lines, fmt.Sprintf("  and %d more %s (-o json has all)", all[p.Code]-maxOfACode, p.Code))
			continue
		case count > maxOfACode:
			continue
		}
		text := string(p.Code) + ": " + p.Text
		if p.Node != "" {
			text = string(p.Code) + " " + p.Node + ": " + p.Text
		}
		wrapped := terminal.Wrap(text, "  ", "  ", f.Columns)
		wrapped[0] = f.paint(markOf(p.Severity), colourOfSeverity(p.Severity)) + wrapped[0][1:]
		lines = append(lines, wrapped...)
		if p.Command != "" {
			lines = append(lines, "    "+p.Command)
		}
	}
	return lines
}

func markOf(s findings.Severity) string {
	if s == findings.Failure {
		return "×"
	}
	return "‼"
}

func colourOfSeverity(s findings.Severity) terminal.Colour {
	if s == findings.Failure {
		return terminal.Red
	}
	return terminal.Yellow
}
