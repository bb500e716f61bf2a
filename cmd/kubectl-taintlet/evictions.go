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
)

func evictionsVerb() *cobra.Command {
	var path string
	var cluster command.Cluster
	c := &cobra.Command{
		Use: "evictions [NODE…]", Short: "list the pods that an eviction would take",
		Long: `List the pods of these Nodes that the NoExecute taints of the rules for level Critical would evict at once,
evict later (tolerationSeconds), or leave. Without NODE it counts them for every Node.

The rules are those of the ConfigMap taintlet in the agents' namespace, or with --config those of a file.`,
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
			cfg, err := configToShow(c.Context(), client, path, cluster.Namespace, c.OutOrStdout())
			if err != nil {
				return err
			}
			return showEvictions(c.Context(), cfg, client, args, c.OutOrStdout())
		},
	}
	c.ValidArgsFunction = completeNodes(&cluster)
	flags := c.Flags()
	flags.StringVar(&path, "config", "", "TaintletConfiguration `file` (default: the one that the agents use)")
	cluster.Add(flags)
	return c
}

// configToShow returns the configuration of a file, or that of the agents, and says
// which it is. Where there are no agents it is the built-in one.
func configToShow(ctx context.Context, client *installation.Client, path, namespace string, w io.Writer) (*config.Config, error) {
	if path != "" {
		return command.LoadConfig(path)
	}
	name := namespace + "/" + installation.Account
	file, _, err := client.ConfigFile(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if file == nil {
		_, err = fmt.Fprintf(w, "There is no ConfigMap %s. With the built-in configuration:\n\n", name)
		return config.Default(), err
	}
	cfg, err := config.HostSchema().Decode([]byte(*file))
	if err != nil {
		return nil, fmt.Errorf("the agents refuse their configuration and use the last valid one, which only they know; give a file by --config: ConfigMap %s: %w", name, err)
	}
	_, err = fmt.Fprintf(w, "With the configuration in use, ConfigMap %s:\n\n", name)
	return cfg, err
}

// showEvictions says what an eviction of these Nodes would take; of none: it
// counts for all Nodes.
func showEvictions(ctx context.Context, cfg *config.Config, client *installation.Client, nodes []string, w io.Writer) error {
	rules, err := evictingRules(cfg, w)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		if err := countEvictions(ctx, client, rules, w); err != nil {
			return err
		}
	}
	for _, name := range nodes {
		if err := listEvictions(ctx, client, name, rules, w); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(w, words.NoRecall)
	return err
}

// evictingRules returns the rules for Critical. Where there are none, it says so and
// returns those that the well-known keys would give to the conditions that can
// become Critical.
func evictingRules(cfg *config.Config, w io.Writer) ([]decide.Rule, error) {
	isNotCritical := func(r decide.Rule) bool { return r.Level != probes.Critical }
	if rules := slices.DeleteFunc(cfg.Policy().Rules, isNotCritical); len(rules) > 0 {
		return rules, nil
	}
	_, err := fmt.Fprint(w, "Eviction is off: no rule for level Critical. With rules for the well-known keys:\n\n")
	return slices.DeleteFunc(cfg.Policy().BuiltInRules(), func(r decide.Rule) bool {
		condition, _ := cfg.Condition(r.Condition)
		return isNotCritical(r) || !condition.BecomesCritical
	}), err
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

// listEvictions lists the pods of one Node by what becomes of them, for each rule.
func listEvictions(ctx context.Context, client *installation.Client, name string, rules []decide.Rule, w io.Writer) error {
	if _, err := client.Node(ctx, name); err != nil {
		return err // a Node that does not exist would have no pods
	}
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

// podText names a pod, who made it, when it goes, and whether it still runs.
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

func countEvictions(ctx context.Context, client *installation.Client, rules []decide.Rule, w io.Writer) error {
	counts := map[string][][groups]int{} // by Node and rule
	err := installation.Each(ctx, client.CoreV1().Pods("").List, metav1.ListOptions{}, func(pod *corev1.Pod) {
		node := pod.Spec.NodeName
		if counts[node] == nil {
			counts[node] = make([][groups]int, len(rules))
		}
		for i, rule := range rules {
			group, _ := fateOf(pod, taintOf(rule))
			counts[node][i][group]++
		}
	})
	delete(counts, "")
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i, rule := range rules {
		taint := taintOf(rule)
		fmt.Fprintf(w, "%s %s sets %s\n", rule.Condition, rule.Level, taint.ToString())
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "NODE\tGO AT ONCE\tGO LATER\tSTAY")
		for _, node := range slices.Sorted(maps.Keys(counts)) {
			count := counts[node][i]
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", terminal.Clean(node, maxWord), count[goAtOnce], count[goLater], count[stay])
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
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
