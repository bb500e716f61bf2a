package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// answersEnv asks for the answers to be written into the page.
const answersEnv = "TAINTLET_RECORD_ANSWERS"

const questionsPage = "../../docs/troubleshooting.md"

// questions are what an operator asks at night, and what the answer must contain
// besides what the page shows.
var questions = []struct{ heading, answer string }{
	// worker-2 recovers for two minutes, so its taint is asked for first.
	{"What clears it?", `last sign +\d+ (?:s|min) ago(?s:.*)worker-2 +MemoryPressure +Degraded +\d+ (?:s|min) .* in \d+ (?:s|min) .* clears at \d\d:\d\d UTC if it stays above 7.5 %`},
	{"Is it safe to uninstall?", `would remove taint node.kubernetes.io/memory-pressure:NoSchedule`},
	{"Why is this node tainted?", `HostMemoryPressure +True +MemoryLow +available .* threshold 5 %`},
	{"Did it flap?", `worker-3 .*NoSchedule \(kept\) +- +3 `},
	{"Who removed my taint?", `TaintContested .* kubectl-taint `},
	{"What would happen at another threshold?", `MemoryPressure +Degraded .* threshold 60 %`},
	{"What happened last night?", `HostMemoryPressureDegraded `},
	{"How do I exclude a node?", `node/worker-5 annotated`},
}

// Each question of docs/troubleshooting.md has one command, and the command's output
// on the page is that of real agents on a real control plane.
func TestQuestions(t *testing.T) {
	t.Parallel()
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	page, err := os.ReadFile(questionsPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	c := newCluster(t, cluster.Options{})
	d := newDesk(t, c) // first: to build kubectl takes more than a minute, and the answers tell times
	incident(t, c)
	for _, q := range questions {
		t.Run(strings.TrimSuffix(q.heading, "?"), func(t *testing.T) {
			a := answerOn(t, text, q.heading)
			got := d.run(t, a)
			matches(t, got, "(?m)"+q.answer)
			if os.Getenv(answersEnv) != "" {
				text = strings.Replace(text, a.block, "$ "+a.command+"\n"+got, 1)
				return
			}
			if want := timeless(a.output); timeless(got) != want {
				t.Errorf("%s (%s=1 writes the page)\nprints\n%s\nthe page has\n%s", a.command, answersEnv, timeless(got), want)
			}
		})
	}
	if text != string(page) {
		if err := os.WriteFile(questionsPage, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// incident installs the chart with five agents, and makes five Nodes: tainted, recovering,
// flapping, contested and healthy.
func incident(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(quick), &settings); err != nil {
		t.Fatal(err)
	}
	fleet, _ := bed.InstallFleet(t, c, map[string]any{"config": settings}, 5, binary.Path(t))
	hosts := map[string]*fixtures.Host{}
	for _, k := range fleet {
		hosts[k.Node] = k.Host
	}
	for name := range hosts {
		waitNode(t, c, name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	}
	isBad := func(node *corev1.Node) bool {
		return tainted(memoryKey)(node) && cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue)(node)
	}
	for range 2 {
		hosts["worker-3"].Memory(2)
		waitNode(t, c, "worker-3", isBad)
		hosts["worker-3"].Memory(50)
		waitNode(t, c, "worker-3", cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	}
	hosts["worker-3"].Memory(4)
	waitNode(t, c, "worker-3", isBad)
	clearLater(t, c)
	hosts["worker-3"].Memory(2) // much less: the condition is written anew, with the wait that is configured now
	waitNode(t, c, "worker-3", saying("clears after 8 min"))
	contest(t, c, hosts["worker-4"], "worker-4")
	hosts["worker-1"].Memory(2)
	waitNode(t, c, "worker-1", isBad)
	c.WaitAgentEvent(t, "worker-1", "HostMemoryPressureDegraded", "")
	hosts["worker-2"].Memory(2)
	waitNode(t, c, "worker-2", isBad)
	hosts["worker-2"].Memory(50)
	waitNode(t, c, "worker-2", saying("clears at"))
}

// clearLater gives the agents the default wait before a clear, which the page has. The Events
// about that change are no part of the incident.
func clearLater(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	patch := strings.ReplaceAll(quick, "clearAfter: 2s", "clearAfter: 2m")
	c.RunKubectl(t, "--namespace", bed.Namespace, "patch", "configmap", bed.Account, "--type=merge", "--patch",
		string(marshal(t, map[string]any{"data": map[string]string{"config.yaml": bed.ConfigHeader + patch}})))
	for _, name := range []string{"worker-1", "worker-2", "worker-3", "worker-4", "worker-5"} {
		c.WaitAgentEvent(t, name, "ConfigurationReloaded", "")
	}
	c.RunKubectl(t, "--namespace", "default", "delete", "events", "--field-selector", "reason=ConfigurationReloaded")
}

// saying holds when the Node's condition says that: it is written after the record.
func saying(text string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		condition := cluster.Condition(node, "HostMemoryPressure")
		return condition != nil && strings.Contains(condition.Message, text)
	}
}

// answer is a command of the page and what it prints, as one block.
type answer struct{ block, command, output, file string }

var (
	blockPattern = regexp.MustCompile("(?s)```\n(\\$ ([^\n]+)\n(.*?))```")
	filePattern  = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// answerOn finds the only answer below a heading of the page.
func answerOn(t *testing.T, page, heading string) answer {
	t.Helper()
	_, section, found := strings.Cut(page, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("the page has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := blockPattern.FindAllStringSubmatch(section, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d commands below %q, want one", len(blocks), heading)
	}
	a := answer{block: blocks[0][1], command: blocks[0][2], output: blocks[0][3]}
	if file := filePattern.FindStringSubmatch(section); file != nil {
		a.file = file[1]
	}
	return a
}

// desk is where an administrator types the commands.
type desk struct {
	host *fixtures.Host
	dir  string
	envs []string
}

// newDesk puts the programs on the PATH. The host of taintlet once is one of files.
func newDesk(t *testing.T, c *cluster.Cluster) *desk {
	t.Helper()
	d := &desk{host: fixtures.NewHost(t), dir: t.TempDir()}
	programs, err := cluster.Build(t.Context(), os.Stderr, cluster.KubectlProgram)
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.Join(d.host.Flags(), " ")
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = once ]; then set -- \"$@\" --node-name=worker-5 %s; fi\nexec %s \"$@\"\n", flags, binary.Path(t))
	err = errors.Join(
		os.Symlink(filepath.Join(programs, cluster.KubectlProgram), filepath.Join(d.dir, "kubectl")),
		os.Symlink(plugin.Path(t), filepath.Join(d.dir, "kubectl-taintlet")),
		os.WriteFile(filepath.Join(d.dir, "taintlet"), []byte(script), 0o700)) //nolint:gosec // it is a program
	if err != nil {
		t.Fatal(err)
	}
	d.envs = append(cluster.KubectlEnv(cluster.Kubeconfig(t, c.Admin()), t.TempDir()), "PATH="+d.dir+":"+os.Getenv("PATH"))
	return d
}

// run types the command and returns what it prints. What kubectl describe says of
// everything else than taintlet is left out.
func (d *desk) run(t *testing.T, a answer) string {
	t.Helper()
	if a.file != "" {
		if err := os.WriteFile(filepath.Join(d.dir, "new.yaml"), []byte(a.file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", a.command) //nolint:gosec // our own page
	command.Dir, command.Env = d.dir, d.envs
	out, err := command.CombinedOutput()
	const notWell = 3
	if code := command.ProcessState.ExitCode(); code != 0 && code != notWell {
		t.Fatalf("%s: %v\n%s", a.command, err, out)
	}
	// The host's files are where a host has them. Lines end without spaces.
	text := strings.ReplaceAll(string(out), d.host.Dir, "")
	text = regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, "")
	if strings.HasPrefix(a.command, "kubectl describe ") {
		text = cluster.NodeDescribed(text)
		text = regexp.MustCompile(`(?m)^ .* TestKubelet *\n`).ReplaceAllString(text, "") // conditions that the test sets in place of a kubelet
	}
	return text
}

// timeless is the output without times, names that the API server chooses, counts of
// requests and the like, and without the widths and the order that follow from them.
func timeless(output string) string {
	for _, volatile := range [][2]string{
		{`taintlet-[a-z0-9]{5}\b`, "taintlet-…"},
		{`\b[0-9a-f]{12}\b`, "…"}, // a configuration
		{`(dispatched_requests_total\{.*\}) \d+`, "$1 …"},
	} {
		output = regexp.MustCompile(volatile[0]).ReplaceAllString(output, volatile[1])
	}
	output = regexp.MustCompile(`\[[a-z ]+\]`).ReplaceAllStringFunc(output, func(verbs string) string {
		words := strings.Fields(strings.Trim(verbs, "[]"))
		slices.Sort(words)
		return strings.Join(words, " ")
	})
	lines := strings.Split(regexp.MustCompile(` +`).ReplaceAllString(cluster.Timeless(output), " "), "\n")
	slices.Sort(lines)
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
