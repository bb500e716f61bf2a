package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
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
		Use: "evictions [NODE…]", Short: "list the pods that an eviction would take",
		Long: `List the pods of these Nodes that the NoExecute taints of the rules for level Critical would evict at once,
evict later (tolerationSeconds), or leave. Without NODE it counts them for every Node.

The rules are those of the ConfigMap taintlet in the agents' namespace, or with --config those of a file. A
Node to which an override applies has the rules of the override.`,
		Example: `  # Which pods would an eviction of this Node take?
  kubectl taintlet evictions worker-1
  # How many on each Node?
  kubectl taintlet evictions
  # With other rules
  kubectl taintlet evictions --config=config.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := clientOf(&cluster)
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
			fmt.Fprint(c.OutOrStdout(), name)
			if err := showEvictions(c.Context(), cfg, client, args, c.OutOrStdout()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), words.NoRecall)
			return err
		},
	}
	c.ValidArgsFunction = completeNodes(&cluster)
	flags := c.Flags()
	flags.StringVar(&path, "config", "", "TaintletConfiguration `file` (default: the one that the agents use)")
	cluster.Add(flags)
	return c
}

// showEvictions says what an eviction of these Nodes would take; of none: it counts for all Nodes.
// Each Node has the rules of its override.
func showEvictions(ctx context.Context, cfg *config.Config, client *installation.Client, names []string, w io.Writer) error {
	if len(names) == 0 {
		return countEvictions(ctx, cfg, client, w)
	}
	told := ""
	for _, name := range names {
		node, err := client.Node(ctx, name) // one that does not exist would have no pods
		if err != nil {
			return err
		}
		rules, heading := evictingRules(cfg.For(node.Labels))
		if heading != told {
			fmt.Fprint(w, heading)
			told = heading
		}
		if err := listEvictions(ctx, client, name, rules, w); err != nil {
			return err
		}
	}
	return nil
}

// evictingRules returns the rules for Critical, and a heading. Where there are none, these are
// those that the well-known keys would give to the conditions that can become Critical, and the
// heading says so.
func evictingRules(cfg *config.Config) (rules []decide.Rule, heading string) {
	if cfg.Override != "" {
		heading = "With " + terminal.Clean(cfg.Override, maxWord) + ":\n\n"
	}
	isNotCritical := func(r decide.Rule) bool { return r.Level != probes.Critical }
	if rules := slices.DeleteFunc(cfg.Policy().Rules, isNotCritical); len(rules) > 0 {
		return rules, heading
	}
	return slices.DeleteFunc(cfg.Policy().BuiltInRules(), func(r decide.Rule) bool {
		condition, _ := cfg.Condition(r.Condition)
		return isNotCritical(r) || !condition.BecomesCritical
	}), heading + "Eviction is off: no rule for level Critical. With rules for the well-known keys:\n\n"
}

func taintOf(rule decide.Rule) corev1.Taint {
	return corev1.Taint{Key: rule.Taint.Key, Value: rule.Taint.Value, Effect: corev1.TaintEffect(rule.Taint.Effect)}
}

// The groups of pods, in the order in which they are shown.
const (
	goAtOnce = iota
	goLater
	stay
	groups
)

// listEvictions lists the pods of one Node by their fate, for each rule.
func listEvictions(ctx context.Context, client *installation.Client, name string, rules []decide.Rule, w io.Writer) error {
	pods, err := installation.List[*corev1.Pod](ctx, client.CoreV1().Pods("").List, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, rule := range rules {
		taint := taintOf(rule)
		fmt.Fprintf(w, "Node %s, %s %s sets %s; of %d pods:\n", name, rule.Condition, rule.Level, taint.ToString(), len(pods))
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			_, first := fateOf(a, taint)
			_, second := fateOf(b, taint)
			return cmp.Or(cmp.Compare(first, second), strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
		})
		var lines [groups][]string
		for _, pod := range pods {
			group, after := fateOf(pod, taint)
			lines[group] = append(lines[group], "    "+podText(pod, after)+"\n")
		}
		for group, heading := range []string{"go at once", "go later", "stay"} {
			fmt.Fprintf(w, "  %d %s\n%s", len(lines[group]), heading, strings.Join(lines[group], ""))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

// maxWord is the longest name of a thing of others that is printed, in bytes: twice
// that of an object.
const maxWord = 2 * 253

// podText names a pod and its owner, and says when it is deleted and whether it still runs.
func podText(pod *corev1.Pod, after time.Duration) string {
	text := terminal.Clean(pod.Namespace+"/"+pod.Name, maxWord)
	for _, owner := range pod.OwnerReferences {
		text += terminal.Clean(fmt.Sprintf(" (%s %s)", owner.Kind, owner.Name), maxWord)
	}
	if after > 0 {
		text += " after " + after.Round(time.Second).String()
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		text += " finished"
	}
	return text
}

// countEvictions counts the pods of all Nodes by what becomes of them, for each override and rule.
func countEvictions(ctx context.Context, cfg *config.Config, client *installation.Client, w io.Writer) error {
	configs, rules, headings := map[string]*config.Config{}, map[*config.Config][]decide.Rule{}, map[*config.Config]string{}
	err := client.EachNode(ctx, func(node *taints.Node) {
		own := cfg.For(node.Labels)
		configs[strings.Clone(node.Name)] = own
		if rules[own] == nil {
			rules[own], headings[own] = evictingRules(own)
		}
	})
	if err != nil {
		return err
	}
	counts := map[string][][groups]int{} // by Node and rule
	err = installation.Each(ctx, client.CoreV1().Pods("").List, metav1.ListOptions{}, func(pod *corev1.Pod) {
		node := pod.Spec.NodeName
		for i, rule := range rules[configs[node]] {
			if i == len(counts[node]) {
				counts[node] = append(counts[node], [groups]int{})
			}
			group, _ := fateOf(pod, taintOf(rule))
			counts[node][i][group]++
		}
	})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, own := range slices.SortedFunc(maps.Keys(rules), func(a, b *config.Config) int { return strings.Compare(a.Override, b.Override) }) {
		fmt.Fprint(w, headings[own])
		for i, rule := range rules[own] {
			taint := taintOf(rule)
			fmt.Fprintf(w, "%s %s sets %s\n", rule.Condition, rule.Level, taint.ToString())
			t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "NODE\tGO AT ONCE\tGO LATER\tSTAY")
			for _, node := range slices.Sorted(maps.Keys(counts)) {
				if configs[node] == own {
					count := counts[node][i]
					fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", terminal.Clean(node, maxWord), count[goAtOnce], count[goLater], count[stay])
				}
			}
			if err := t.Flush(); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
	}
	return nil
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
