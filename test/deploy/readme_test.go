package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commands returns the scripts of the README, in its order, each found by its
// first line.
func commands(t *testing.T) map[string]string {
	t.Helper()
	scripts := map[string]string{}
	for _, script := range bed.Scripts(t, "deploy/README.md") {
		first, _, _ := strings.Cut(script, "\n")
		if scripts[first] += script; scripts[first] != script && !strings.HasPrefix(first, "cat >tuning.yaml") {
			t.Fatalf("two scripts begin with %q", first)
		}
	}
	return scripts
}

// The beginnings of two scripts of the README that tests treat by themselves.
const (
	overAnEdit  = "helm upgrade taintlet"
	ofDeadNodes = "kubectl --namespace taintlet-system get pods"
)

// beginning returns the first line, and so the key, of the script that begins like this.
func beginning(t *testing.T, scripts map[string]string, with string) string {
	t.Helper()
	for first := range scripts {
		if strings.HasPrefix(first, with) {
			return first
		}
	}
	t.Fatalf("no script of the README begins with %q", with)
	return ""
}

// The commands of the README install, verify, tune and uninstall, in each of
// the two ways.
func TestCommandsOfTheREADME(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t) // the commands are for a cluster that has it
	c := cluster.New(t, cluster.Options{})
	c.Register(t, "worker")
	runPods(t, c)
	k := bed.NewConsole(t, c)
	for _, build := range []func(context.Context, string, process.BuildOptions) (string, error){process.BuildAgent, process.BuildPlugin} {
		if _, err := build(t.Context(), filepath.Join(k.Dir, "bin"), process.BuildOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	scripts := commands(t)
	ran := map[string]bool{}
	run := func(first string) {
		t.Helper()
		line := beginning(t, scripts, first)
		ran[line] = true
		if first == overAnEdit {
			overwritesAnEdit(t, k, scripts[line])
			return
		}
		t.Logf("$ %s%s", scripts[line], k.Run(scripts[line]))
	}
	removals := []string{"kubectl --namespace taintlet-system delete daemonset", "kubectl taintlet cleanup all", "kubectl delete --ignore-not-found"}
	for _, way := range [][]string{
		append([]string{"kubectl apply -f deploy/keep.yaml", "kubectl --namespace taintlet-system rollout"}, removals...),
		{
			"kubectl create namespace", "kubectl --namespace taintlet-system rollout", "cat >tuning.yaml",
			"kubectl taintlet evictions", "cat >evicting.yaml", "kubectl --namespace taintlet-system get leases", "# the same values without",
			overAnEdit, removals[0], removals[1], "helm uninstall",
		},
	} {
		leaveTraces(t, c)
		for i, first := range way {
			if first == removals[0] {
				refusesBesideAgents(t, k)
			}
			run(first)
			if first == "cat >tuning.yaml" {
				upgradesWithARecipe(t, k)
			}
			if i == 0 {
				k.Run("kubectl get mutatingadmissionpolicybinding taintlet-keep") // Helm finds out by itself
			}
		}
		nothingIsLeft(t, k)
	}
	ran[beginning(t, scripts, ofDeadNodes)] = true // TestUninstallWithADeadNode
	for first := range scripts {
		if !ran[first] {
			t.Errorf("nobody ran the script that begins with %q", first)
		}
	}
}

// The commands of the front page end with a check that finds nothing wrong, and the pods ask
// for the image that was built and pushed. docker writes down what it is asked to do. The
// agents are processes of this host.
func TestREADMEInstalls(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	c := cluster.New(t, cluster.Options{})
	k := bed.NewConsole(t, c)
	bin, agents := filepath.Join(k.Dir, "bin"), t.TempDir()
	asked := filepath.Join(k.Dir, "docker.txt")
	docker := "#!/bin/sh\necho \"$@\" >>" + asked + "\n"
	program, err := process.BuildAgent(t.Context(), agents, process.BuildOptions{})
	if err = errors.Join(err, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o700)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	out, err := process.Output(t.Context(), ".", nil, "go", "env", "GOCACHE", "GOMODCACHE")
	caches := strings.Fields(out)
	if err != nil || len(caches) != 2 {
		t.Fatal(out, err)
	}
	bed.RunFleet(t, c, 1, program)
	scripts := bed.Scripts(t, "README.md")
	k.Dir = "../.." // where make, the chart and the plugin are
	where := fmt.Sprintf("export GOBIN=%s GOCACHE=%s GOMODCACHE=%s\n", bin, caches[0], caches[1])
	for i, mode := range []string{"Observe", "Enforce"} {
		t.Logf("$ %s%s", scripts[i], k.Run(where+scripts[i]))
		if got := k.Run("kubectl --namespace taintlet-system get configmap taintlet -o jsonpath='{.data}'"); !strings.Contains(got, "mode: "+mode) {
			t.Errorf("the mode is not %s in %s", mode, got)
		}
	}
	runsPages(t, k)
	image := k.Run("kubectl --namespace taintlet-system get daemonset taintlet -o jsonpath='{..image}'")
	text, err := os.ReadFile(asked) //nolint:gosec // ours
	if want := regexp.MustCompile(`^build --tag ` + regexp.QuoteMeta(image) + ` .* \.\npush ` + regexp.QuoteMeta(image) + "\n$"); err != nil || !want.Match(text) {
		t.Errorf("%v: the pods run %s, and docker was asked to\n%s", err, image, text)
	}
}

// runsPages runs the commands of the pages that start from a running agent.
func runsPages(t *testing.T, k *bed.Console) {
	t.Helper()
	for _, page := range []string{"docs/first-week.md", "docs/configuration.md", "docs/status.md", "docs/conditions-of-others.md"} {
		if page == "docs/conditions-of-others.md" {
			k.Run("kubectl taint node worker-1 example.com/kernel-deadlock:NoSchedule") // which an operator takes away
		}
		for _, script := range bed.Scripts(t, page) {
			script = strings.ReplaceAll(script, "NODE", "worker-1")
			t.Logf("$ %s%s", script, k.Run(script))
		}
	}
}

// upgradesWithARecipe runs the command of the cookbook with its first recipe.
func upgradesWithARecipe(t *testing.T, k *bed.Console) {
	t.Helper()
	recipe := bed.Blocks(t, "docs/cookbook.md", "yaml")[0]
	if err := os.WriteFile(filepath.Join(k.Dir, "recipe.yaml"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, script := range bed.Scripts(t, "docs/cookbook.md") {
		t.Logf("$ %s%s", script, k.Run(script))
	}
	if got := k.Run("kubectl --namespace taintlet-system get configmap taintlet -o jsonpath='{.data}'"); !strings.Contains(got, "stalledPercent: 0") {
		t.Errorf("the recipe is not in %s", got)
	}
}

// refusesBesideAgents cleans up while agents run: that changes nothing and says so.
func refusesBesideAgents(t *testing.T, k *bed.Console) {
	t.Helper()
	const held = "kubectl get node worker -o jsonpath='{.metadata.annotations.taintlet\\.dev/held}'"
	for _, what := range []string{"all", "node worker"} {
		out := k.Run("! taintlet cleanup " + what + " 2>&1")
		if !regexp.MustCompile(`^taintlet: agents still run, and would set the taints again: taintlet-\S+ on worker; delete the DaemonSet first`).MatchString(out) || k.Run(held) == "" {
			t.Errorf("cleanup %s beside agents says\n%s", what, out)
		}
	}
	if out := k.Run("taintlet cleanup all --dry-run"); !strings.Contains(out, "dry run: 1 of 1 nodes would be cleaned up") {
		t.Errorf("a dry run beside agents says\n%s", out)
	}
}

// overwritesAnEdit changes a field of the chart as somebody would by hand. Helm 4 upgrades
// over that with the option of the README only, Helm 3 without it.
func overwritesAnEdit(t *testing.T, k *bed.Console, script string) {
	t.Helper()
	k.Run("kubectl --namespace taintlet-system set resources daemonset/taintlet --limits=memory=80Mi")
	plain := strings.Replace(script, " --force-conflicts", "", 1)
	if bed.HelmForcesConflicts() {
		out := k.Run("! " + strings.TrimSpace(plain) + " 2>&1")
		t.Logf("$ %s%s", plain, out)
		if !regexp.MustCompile(`conflict with "kubectl-set".*\.resources\.limits\.memory`).MatchString(out) {
			t.Errorf("over an edit, an upgrade without --force-conflicts says\n%s", out)
		}
		plain = script
	}
	t.Logf("$ %s%s", plain, k.Run(plain))
	if got := k.Run("kubectl --namespace taintlet-system get daemonset taintlet -o jsonpath='{..limits.memory}'"); got != "64Mi" {
		t.Errorf("after an upgrade the limit of memory is %s", got)
	}
}

// With a dead Node the first command of Uninstall ends in time and says so. The
// script that the README has for that lets the removal end.
func TestUninstallWithADeadNode(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	c := cluster.New(t, cluster.Options{})
	c.Register(t, "alive")
	c.Register(t, "dead")
	runPods(t, c, "dead")
	k := bed.NewConsole(t, c)
	k.Run("kubectl apply -f deploy/taintlet.yaml")
	cluster.Eventually(t, "two pods", func() error {
		if out := k.Run("kubectl --namespace taintlet-system get pods -o name"); strings.Count(out, "pod/") != 2 {
			return errors.New(out)
		}
		return nil
	})
	scripts := commands(t)
	for first, script := range scripts {
		if strings.HasPrefix(first, "kubectl --namespace taintlet-system delete daemonset") {
			if !strings.Contains(script, "--timeout=2m") {
				t.Fatalf("nothing bounds %s", script)
			}
			out := k.Run("! " + strings.Replace(script, "--timeout=2m", "--timeout=3s", 1))
			if !strings.Contains(out, "timed out waiting for the condition") {
				t.Errorf("with a dead Node:\n%s", out)
			}
		}
	}
	t.Log(k.Run(scripts[beginning(t, scripts, ofDeadNodes)]))
	k.Run("kubectl --namespace taintlet-system wait --for=delete daemonset/taintlet --timeout=30s")
}

// runPods stands in for all kubelets but those of dead Nodes: it calls pods ready,
// and lets them go.
func runPods(t *testing.T, c *cluster.Cluster, dead ...string) {
	t.Helper()
	watcher, err := c.Client().CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	go func() {
		for event := range watcher.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil && slices.Contains(dead, pod.Spec.NodeName) {
				continue
			}
			pods, ctx := c.Client().CoreV1().Pods(pod.Namespace), context.Background()
			if pod.DeletionTimestamp != nil {
				pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)) //nolint:errcheck // gone already, or the test waits in vain
			} else if len(pod.Status.Conditions) < 2 {
				pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, //nolint:errcheck // the same
					[]byte(`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`), metav1.PatchOptions{}, "status")
			}
		}
	}()
}

// leaveTraces puts onto the Node what an agent leaves.
func leaveTraces(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for subresource, patch := range map[string]string{
		"":       `{"metadata": {"annotations": {"taintlet.dev/held": "node.kubernetes.io/pid-pressure"}}}`,
		"status": `{"status": {"conditions": [{"type": "HostPIDPressure", "status": "True"}]}}`,
	} {
		if err := bed.PatchNode(t.Context(), c.Client(), "worker", types.StrategicMergePatchType, patch, subresource); err != nil {
			t.Fatal(err)
		}
	}
}

// nothingIsLeft checks that uninstalling removed all that was installed, and
// the traces.
func nothingIsLeft(t *testing.T, k *bed.Console) {
	t.Helper()
	for _, command := range []string{
		"kubectl get --ignore-not-found -o name namespaces,clusterroles,clusterrolebindings,flowschemas,prioritylevelconfigurations," +
			"validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings",
		"kubectl --namespace default get --ignore-not-found -o name roles,rolebindings",
		"kubectl get nodes -o jsonpath='{.items[*].metadata.annotations}'",
		"kubectl get nodes -o jsonpath='{.items[*].status.conditions[*].type}' | tr ' ' '\n'",
	} {
		for line := range strings.Lines(k.Run(command)) {
			if strings.Contains(line, "taintlet") || strings.HasPrefix(line, "Host") {
				t.Errorf("left after uninstalling: %s", line)
			}
		}
	}
}

// The README's table of permissions is what the chart grants.
func TestREADMEHasThePermissions(t *testing.T) {
	var documented []string
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:get|list|watch|patch|create|update|delete)(?:, [a-z]+)*) \| (\S+) \| (\S*) ?\|`).FindAllStringSubmatch(readme(t), -1) {
		for verb := range strings.SplitSeq(row[1], ", ") {
			documented = append(documented, verb+" "+row[2]+" "+row[3])
		}
	}
	var granted []string
	for document := range strings.SplitSeq(bed.Render(t, "--set", "evict.slots=1,cleanup.afterUninstall=false"), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" || role.Name == "taintlet-oncall" { // which is for people
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted = append(granted, verb+" "+resource+" "+role.Namespace)
				}
			}
		}
	}
	slices.Sort(documented)
	slices.Sort(granted)
	if !slices.Equal(documented, granted) {
		t.Errorf("documented %q\ngranted    %q", documented, granted)
	}
}
