package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Fleet is what is known of all Nodes. It keeps rows and no Node, and of a Node that
// is healthy its name and the last sign of its agent.
type Fleet struct {
	// Selector chooses Nodes by their labels; nil: all.
	Selector labels.Selector
	// Version is that of this program, with which that of the agents is compared.
	Version string

	// config is the configuration of the agents, or the built-in one where it is not known.
	config *config.Config
	policy *decide.Policy
	// names are the Nodes that were asked for; empty: all.
	names []string
	// silentAfter is how old the last sign may be. 0: two and a half heartbeats, so that one
	// may be lost.
	silentAfter  time.Duration
	nodes        map[string]Node
	installation *installation.Installation
}

// NewFleet returns a Fleet without Nodes.
func NewFleet(names []string, silentAfter time.Duration) *Fleet {
	return &Fleet{policy: config.Default().Policy(), names: names, silentAfter: silentAfter, nodes: map[string]Node{}, config: config.Default()}
}

// Add takes in a Node as it is now.
func (f *Fleet) Add(node *taints.Node) {
	if f.Selector != nil && !f.Selector.Matches(labels.Set(node.Labels)) {
		return
	}
	n := read(node, f.policy)
	if len(f.names) == 0 { // what is not shown does not stay in memory
		n.Conditions, n.Foreign = slices.DeleteFunc(n.Conditions, Condition.isHealthy), nil
		if len(n.Conditions) == 0 {
			n.Conditions = nil
		}
	}
	f.nodes[strings.Clone(node.Name)] = n
}

// Report says how the Fleet is at that time.
func (f *Fleet) Report(now time.Time) Report {
	r := Report{TypeMeta: metav1.TypeMeta{APIVersion: config.APIVersion, Kind: Kind}, Time: now.UTC().Truncate(time.Second), Nodes: []Node{}}
	var pods map[string][]*corev1.Pod
	if f.installation != nil {
		pods = installation.PodsByNode(f.installation.Pods)
	}
	var known []Node
	for name, n := range f.nodes {
		limit := cmp.Or(f.silentAfter, f.config.Heartbeat.Duration*5/2)
		n.isSilent, n.asked = limit > 0 && (n.LastSign == nil || now.Sub(*n.LastSign) > limit), len(f.names) > 0
		n.State = f.stateAt(n, pods[name])
		r.Summary.count(n, now)
		if n.State != NoAgent {
			known = append(known, n)
		}
		isShown := n.State != Healthy && n.State != NoAgent || n.Paused != "" || n.asked
		if isShown {
			n.Pods = podsOf(pods[name])
			r.Nodes = append(r.Nodes, n)
		}
	}
	f.install(&r, known, now)
	slices.SortFunc(r.Nodes, func(a, b Node) int { return cmp.Or(a.urgency()-b.urgency(), strings.Compare(a.Name, b.Name)) })
	return r
}

// stateAt is the State with dead agents taken into account.
func (f *Fleet) stateAt(n Node, pods []*corev1.Pod) State {
	isUp := slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		ready, _ := installation.ReadySince(p)
		return ready
	})
	switch {
	case n.State == NoAgent:
	case f.installation != nil && f.installation.Knows(installation.PartPods) && !isUp:
		return Down
	case n.isSilent:
		return Silent
	}
	return n.State
}

func (s *Summary) count(n Node, now time.Time) {
	s.Nodes++
	*map[State]*int{
		NoAgent: &s.WithoutAgent, Healthy: &s.Healthy, Tainted: &s.Tainted, Degraded: &s.Degraded, Unknown: &s.Unknown, Down: &s.Down, Silent: &s.Silent,
	}[n.State]++
	s.Agents = s.Nodes - s.WithoutAgent
	if n.Paused != "" {
		s.Paused++
	}
	if n.Maintenance != "" {
		s.Maintenance++
	}
	if n.State == Silent && n.LastSign != nil {
		s.SilentSeconds = max(s.SilentSeconds, int64(now.Sub(*n.LastSign)/time.Second))
	}
}

// IsWell reports whether there are agents, all are healthy and nothing has failed. Of
// Nodes that were asked for by name, each has to have an agent, and what fails
// elsewhere does not count.
func (f *Fleet) IsWell(r Report) bool {
	isAsked := len(f.names) > 0
	hasFailed := slices.ContainsFunc(r.Findings, func(p Finding) bool {
		return p.Severity == Failure && (!isAsked || p.Node != "")
	})
	return r.Summary.Agents > 0 && r.Summary.Healthy == r.Summary.Agents && (!isAsked || r.Summary.WithoutAgent == 0) && !hasFailed
}

func (n Node) urgency() int {
	order := []State{Down, Silent, Tainted, Degraded, Unknown, Healthy, NoAgent}
	urgency := 2 * slices.Index(order, n.State)
	if slices.ContainsFunc(n.Conditions, func(c Condition) bool { return c.Level == probes.Critical }) {
		urgency--
	}
	return urgency
}

// SetInstallation takes in what is installed, as it is now. Nodes that are added later have the
// conditions of its configuration.
func (f *Fleet) SetInstallation(i *installation.Installation) {
	f.installation = i
	if cfg, err := i.Configuration(); err == nil && cfg != nil && cfg.Hash != f.config.Hash {
		f.config, f.policy = cfg, cfg.Policy()
	}
}

// install puts into the Report what is installed, and what is wrong.
func (f *Fleet) install(r *Report, known []Node, now time.Time) {
	if i := f.installation; i != nil {
		r.Unread = slices.Clone(i.Unread)
		for _, d := range i.DaemonSets {
			r.DaemonSets = append(r.DaemonSets, DaemonSet{
				Namespace: terminal.Clean(d.Namespace, maxName), Name: terminal.Clean(d.Name, maxName),
				Desired: int(d.Status.DesiredNumberScheduled), Ready: int(d.Status.NumberReady), Missing: int(max(0, d.Status.DesiredNumberScheduled-d.Status.CurrentNumberScheduled)),
				Image: terminal.Clean(installation.Agent(&d.Spec.Template.Spec).Image, maxTaint),
			})
		}
		for _, lease := range i.Slots {
			slot := Slot{Name: terminal.Clean(lease.Name, maxName), Holder: terminal.Clean(*cmp.Or(lease.Spec.HolderIdentity, new("")), maxName)}
			if at := lease.Spec.RenewTime; at != nil {
				slot.RenewedAt = new(at.UTC())
			}
			if until := f.cooldownUntil(slot.Holder); until.After(now) {
				slot.CooldownUntil = &until
			}
			r.Slots = append(r.Slots, slot)
		}
	}
	r.Findings = find(facts{f.installation, known, now, f.Version})
	if len(f.names) > 0 || f.Selector != nil {
		r.Findings = slices.DeleteFunc(r.Findings, func(p Finding) bool { return p.Node != "" && f.nodes[p.Node].Name == "" })
	}
}

// cooldownUntil is until when a Node keeps its eviction slot at most; zero: it evicts or is
// about to, or nothing is known of it. The removal of its NoExecute taint was a write of its
// spec.
func (f *Fleet) cooldownUntil(holder string) time.Time {
	n := f.nodes[holder]
	if n.evicts || slices.ContainsFunc(n.Conditions, func(c Condition) bool { return c.Level == probes.Critical }) {
		return time.Time{}
	}
	return n.specWrittenAt.Add(f.config.Eviction.Cooldown.Duration).UTC()
}
