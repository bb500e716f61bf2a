package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/cmd/words"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

func evictionsVerb() *cobra.Command {
	var path string
	var cluster command.Cluster
	c := &cobra.Command{
		Use: "evictions [NODE…]", Short: "List the pods that an eviction would delete",
		Long: `List the pods that the NoExecute taints of the rules for level Critical would evict from these Nodes: evicted
now, evicted later (tolerationSeconds) or kept. Without NODE it counts the pods of every Node.

It uses the rules of the ConfigMap taintlet in the agents' namespace, or with --config those of a file. If an
override applies to a Node, it uses the rules of the override.`,
		Example: `  # Which pods would be evicted from this Node?
  kubectl taintlet evictions worker-1
  # How many pods would be evicted from each Node?
  kubectl taintlet evictions
  # With other rules
  kubectl taintlet evictions --config=config.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := installation.Connect(&cluster)
			if err != nil {
				return err
			}
			var cfg *config.Config
			var name string
			if path == "" {
				cfg, name, err = configOfAgents(c.Context(), client, cluster.Namespace)
				name = "With the configuration in use, " + name + ":\n\n"
			} else {
				cfg, err = command.LoadConfig(path)
			}
			if err != nil {
				return err
			}
			if cfg == nil {
				cfg, name = config.Default(), "With the built-in configuration, because the agents have none:\n\n"
			}
			all, err := foretell(c.Context(), cfg, client, args)
			if err == nil {
				fmt.Fprint(c.OutOrStdout(), name)
				err = printEvictions(all, len(args) > 0, c.OutOrStdout())
			}
			return err
		},
	}
	c.ValidArgsFunction = installation.CompleteNodes(&cluster)
	flags := c.Flags()
	flags.StringVar(&path, "config", "", "TaintletConfiguration `file` (default: the agents' ConfigMap)")
	cluster.Add(flags)
	return c
}

// The groups of pods, in the order in which they are shown.
const (
	goAtOnce = iota
	goLater
	stay
	groups
)

// eviction is what a rule for Critical would do to the pods of a Node.
type eviction struct {
	// node is the Node with the override that applies to it.
	node  string
	isOn  bool
	rule  decide.Rule
	taint corev1.Taint
	count [groups]int
	pods  [groups][]string
}

// foretell returns the evictions of these Nodes, with the texts of their pods; of none: of all
// Nodes, with counts only. Each Node has the rules of its override.
func foretell(ctx context.Context, cfg *config.Config, client *installation.Client, names []string) (all []*eviction, err error) {
	byNode := map[string][]*eviction{}
	add := func(node *taints.Node) {
		own := cfg.For(node.Labels)
		rules, isOn := evictingRules(own)
		shown := terminal.Clean(terminal.With(node.Name, " with ", own.Override), 2*maxWord)
		for _, rule := range rules {
			e := &eviction{node: shown, isOn: isOn, rule: rule, taint: corev1.Taint{Key: rule.Taint.Key, Value: rule.Taint.Value, Effect: corev1.TaintEffect(rule.Taint.Effect)}}
			all, byNode[node.Name] = append(all, e), append(byNode[node.Name], e)
		}
	}
	selectors := make([]string, max(1, len(names))) // without names one that chooses all pods
	for i, name := range names {
		selectors[i] = "spec.nodeName=" + name
	}
	if err = client.EachNode(ctx, names, "", add); err != nil { // a Node that does not exist would have no pods
		return nil, err
	}
	for _, selector := range selectors {
		err = errors.Join(err, installation.Each(ctx, client.CoreV1().Pods("").List, metav1.ListOptions{FieldSelector: selector}, func(pod *corev1.Pod) {
			for _, e := range byNode[pod.Spec.NodeName] {
				group, after := fateOf(pod, e.taint)
				e.count[group]++
				if len(names) > 0 {
					e.pods[group] = append(e.pods[group], podText(pod, after))
				}
			}
		}))
	}
	return all, err
}

// evictingRules returns the rules for Critical. Where there are none, eviction is not on, and these
// are those that the well-known keys would give to the conditions that can become Critical.
func evictingRules(cfg *config.Config) (rules []decide.Rule, isOn bool) {
	isNotCritical := func(r decide.Rule) bool { return r.Level != probes.Critical }
	if rules := slices.DeleteFunc(cfg.Policy().Rules, isNotCritical); len(rules) > 0 {
		return rules, true
	}
	return slices.DeleteFunc(cfg.Policy().BuiltInRules(), func(r decide.Rule) bool {
		condition, _ := cfg.Condition(r.Condition)
		return isNotCritical(r) || !condition.BecomesCritical
	}), false
}

// printEvictions lists the pods by their fate, or counts them in a table.
func printEvictions(all []*eviction, isListed bool, w io.Writer) error {
	rows := [][]string{{"NODE", "EVICTED NOW", "LATER", "KEPT", "EVICTION", "TAINT"}}
	var lines []string
	isOff := false
	for _, e := range all {
		state, sets := "on", "sets"
		if !e.isOn {
			isOff, state, sets = true, "off", "would set"
		}
		rows = append(rows, []string{e.node, fmt.Sprint(e.count[goAtOnce]), fmt.Sprint(e.count[goLater]), fmt.Sprint(e.count[stay]), state, e.taint.ToString()})
		lines = append(lines, fmt.Sprintf("Node %s, %s %s %s %s; of %d pods:", e.node, e.rule.Condition, e.rule.Level, sets, e.taint.ToString(), e.count[goAtOnce]+e.count[goLater]+e.count[stay]))
		for group, heading := range []string{"evicted now", "evicted later", "kept"} {
			slices.Sort(e.pods[group])
			lines = append(append(lines, fmt.Sprintf("  %d %s", e.count[group], heading)), e.pods[group]...)
		}
		lines = append(lines, "")
	}
	if !isListed {
		lines = terminal.Aligned(rows)
	}
	if isOff {
		lines = append(lines, "Eviction is off: no rule for level Critical. The list assumes NoExecute taints with the well-known keys.")
	}
	_, err := fmt.Fprintln(w, strings.Join(append(lines, words.NoRecall), "\n"))
	return err
}

// maxWord is the longest name of a thing of others that is printed, in bytes: twice
// that of an object.
const maxWord = 2 * 253

// podText is the line of a pod and its owner, with when it is deleted and whether it still runs.
func podText(pod *corev1.Pod, after time.Duration) string {
	text := pod.Namespace + "/" + pod.Name
	for _, owner := range pod.OwnerReferences {
		text += fmt.Sprintf(" (%s %s)", owner.Kind, owner.Name)
	}
	if after > 0 {
		text += " after " + after.Round(time.Second).String()
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		text += " finished"
	}
	return "    " + terminal.Clean(text, 2*maxWord)
}

// fateOf reckons which group a pod is in when its Node gets a NoExecute taint, and after which
// time it goes later. As in the controller
// (processPodOnNode and getMinTolerationTime in
// pkg/controller/tainteviction/taint_eviction.go), the first toleration that
// matches decides, and one of 0 s or less is none. A toleration by comparison (Lt,
// Gt) counts: only an API server that has these lets a pod have one.
func fateOf(pod *corev1.Pod, taint corev1.Taint) (group int, after time.Duration) {
	for _, toleration := range pod.Spec.Tolerations {
		switch seconds := toleration.TolerationSeconds; {
		case !toleration.ToleratesTaint(klog.Logger{}, &taint, true):
			continue
		case seconds == nil:
			return stay, 0
		case *seconds > 0:
			return goLater, time.Duration(*seconds) * time.Second
		default:
			return goAtOnce, 0
		}
	}
	return goAtOnce, 0
}
