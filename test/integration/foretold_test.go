package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// evictingKey is the taint of the rule below: with a value, so that operators of
// tolerations count.
const (
	evictingKey  = "example.com/tight"
	evictingRule = "eviction: {slots: 1}\nrules:\n" +
		"- {condition: MemoryPressure, level: Degraded, taint: {key: " + evictingKey + ", effect: NoSchedule}}\n" +
		"- {condition: MemoryPressure, level: Critical, taint: {key: " + evictingKey + ", value: \"950\", effect: NoExecute}}\n"
)

// What config --evictions says of each pod is what the real controller does when
// the Node gets the taint.
func TestEvictionsAreForetold(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const node = "foretold"
	c.Register(t, node)
	seconds := func(n int64) *int64 { return &n }
	exists := corev1.Toleration{Key: evictingKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	equal := corev1.Toleration{Key: evictingKey, Operator: corev1.TolerationOpEqual, Value: "950"}
	with := func(t corev1.Toleration, change func(*corev1.Toleration)) corev1.Toleration { change(&t); return t }
	later := with(exists, func(t *corev1.Toleration) { t.TolerationSeconds = seconds(3) })
	want := map[string]string{}
	for name, p := range map[string]struct {
		fate        string
		tolerations []corev1.Toleration
	}{
		"plain":         {"evicted now", nil},
		"other-value":   {"evicted now", []corev1.Toleration{with(equal, func(t *corev1.Toleration) { t.Value = "95" })}},
		"no-value":      {"evicted now", []corev1.Toleration{with(equal, func(t *corev1.Toleration) { t.Value = "" })}},
		"other-key":     {"evicted now", []corev1.Toleration{with(exists, func(t *corev1.Toleration) { t.Key = "example.com/other" })}},
		"other-effect":  {"evicted now", []corev1.Toleration{with(exists, func(t *corev1.Toleration) { t.Effect = corev1.TaintEffectNoSchedule })}},
		"no-seconds":    {"evicted now", []corev1.Toleration{with(exists, func(t *corev1.Toleration) { t.TolerationSeconds = seconds(0) })}},
		"less-than-no":  {"evicted now", []corev1.Toleration{with(exists, func(t *corev1.Toleration) { t.TolerationSeconds = seconds(-1) })}},
		"seconds":       {"evicted later", []corev1.Toleration{later}},
		"seconds-first": {"evicted later", []corev1.Toleration{later, equal}},
		"exists":        {"kept", []corev1.Toleration{exists}},
		"equal":         {"kept", []corev1.Toleration{equal}},
		"all-keys":      {"kept", []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		"seconds-last":  {"kept", []corev1.Toleration{equal, later}},
	} {
		want["default/"+boundPod(t, c, "foretold-"+name, node, tolerating(p.tolerations...))] = p.fate
	}
	config := configFile(t, evictingRule)
	code, out := askedCode(t, "evictions", "--config="+config, node, "--kubeconfig="+cluster.Kubeconfig(t, c.Admin()))
	if told := fates(out); code != 0 || fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("exit code %d, told %v, want %v:\n%s", code, told, want, out)
	}
	for _, text := range []string{
		"Node foretold, MemoryPressure Critical sets example.com/tight=950:NoExecute; of 13 pods:\n  7 evicted now\n", "\n  2 evicted later\n    default/foretold-seconds after 3s\n",
		"\n  4 kept\n", "An eviction that has begun cannot be undone",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("lacks %q:\n%s", text, out)
		}
	}
	_, counted := askedCode(t, "evictions", "--config="+config, "--kubeconfig="+cluster.Kubeconfig(t, c.Admin()))
	if !regexp.MustCompile(`(?m)^foretold +7 +2 +4 +on `).MatchString(counted) {
		t.Errorf("counted for all Nodes:\n%s", counted)
	}

	c.RunKubectl(t, "taint", "node", node, evictingKey+"=950:NoExecute")
	for _, fate := range []string{"evicted now", "evicted later"} {
		for name, of := range want {
			if of == fate {
				waitPod(t, c, strings.TrimPrefix(name, "default/"), isDeleted)
			}
		}
	}
	time.Sleep(2 * time.Second) // that a pod stays can only be waited for
	for name, fate := range want {
		if fate == "kept" {
			staysSoFar(t, c, strings.TrimPrefix(name, "default/"))
		}
	}
}

// fates reads what config --evictions says of each pod.
func fates(out string) map[string]string {
	told, group := map[string]string{}, ""
	heading := regexp.MustCompile(`^  \d+ (evicted now|evicted later|kept)$`)
	for line := range strings.SplitSeq(out, "\n") {
		if match := heading.FindStringSubmatch(line); match != nil {
			group = match[1]
		} else if pod, found := strings.CutPrefix(line, "    "); found {
			told[strings.Fields(pod)[0]] = group
		}
	}
	return told
}

// Without a rule for Critical it says so, and what the well-known keys would do.
// A Node that does not exist is a mistake, not a Node without pods.
func TestEvictionsWithoutARule(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const node = "no-rule"
	c.Register(t, node)
	boundPod(t, c, "no-rule-plain", node, func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1"}}
	})
	kubeconfig := "--kubeconfig=" + cluster.Kubeconfig(t, c.Admin())
	code, out := askedCode(t, "evictions", node, kubeconfig)
	for _, want := range []string{
		"Eviction is off: no rule for level Critical.", "MemoryPressure Critical would set node.kubernetes.io/memory-pressure:NoExecute; of 1 pods",
		"PIDPressure Critical would set node.kubernetes.io/pid-pressure:NoExecute; of 1 pods", "default/no-rule-plain (ReplicaSet web)\n",
	} {
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "disk-pressure") {
			t.Errorf("exit code %d, want %q:\n%s", code, want, out)
		}
	}
	if code, out := askedCode(t, "evictions", "no-such-node", kubeconfig); code != 1 || !strings.Contains(out, `there is no Node "no-such-node"`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// An eviction that has begun cannot be undone: all pods go although the taint
// is removed as soon as the first one has gone.
func TestAnEvictionCannotBeRecalled(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const node = "recalled"
	c.Register(t, node)
	var pods []string
	for i := range 40 {
		pods = append(pods, boundPod(t, c, fmt.Sprint("recalled-", i), node, tolerating()))
	}
	var left []string
	c.RunKubectl(t, "taint", "node", node, evictingKey+":NoExecute")
	waitPod(t, c, pods[0], isDeleted)
	c.SetTaints(t, node)
	for _, name := range pods {
		if pod, err := c.Client().CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{}); err == nil && !isDeleted(pod) {
			left = append(left, name)
		}
	}
	t.Logf("%d of %d pods were left when the taint was gone", len(left), len(pods))
	for _, name := range pods {
		waitPod(t, c, name, isDeleted)
	}
	if after := c.GetNode(t, node); slices.ContainsFunc(after.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == evictingKey }) {
		t.Errorf("taints = %v", after.Spec.Taints)
	}
}

// configFile writes a configuration.
func configFile(t *testing.T, config string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(bed.ConfigHeader+config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
