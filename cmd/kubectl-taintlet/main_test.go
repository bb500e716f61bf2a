package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/process"
)

// program is this program, built once for all tests.
var program = process.SharedProgram{Build: process.BuildPlugin}

func TestMain(m *testing.M) {
	code := m.Run()
	program.Remove()
	os.Exit(code)
}

// Help names what people type, by itself and as a plugin of kubectl. Without arguments
// the program shows help.
func TestHelpNamesThePlugin(t *testing.T) {
	code, help, stderr := program.Call(t)
	if code != 0 || stderr != "" || !strings.Contains(help, "\n  kubectl taintlet [command]\n") {
		t.Errorf("exit code %d, %s%s", code, help, stderr)
	}
	for _, verb := range newProgram().Commands() {
		_, help, _ := program.Call(t, verb.Name(), "--help")
		if !strings.Contains(help, "\n  kubectl taintlet "+verb.Name()) || strings.Contains(help, "\n  taintlet ") {
			t.Errorf("%s: %s", verb.Name(), help)
		}
	}
	if code, _, stderr := program.Call(t, "clean"); code != 2 || !strings.Contains(stderr, "See kubectl taintlet help.") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// Each verb ends with the codes that its help has. Those of a cluster are tested in
// test/integration and test/deploy.
func TestExitCodes(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // parts of it
	}{
		{[]string{"version"}, 0, "taintlet ", ""},
		{[]string{"--version"}, 0, "kubectl taintlet version ", ""},
		{[]string{"completion", "sh"}, 2, "", `unknown command "sh" for "kubectl taintlet completion"`},
		{[]string{"config", "--default"}, 0, "# The built-in configuration:\napiVersion: taintlet.dev/v1alpha1\n", ""},
		{[]string{"config"}, 1, "", "no cluster is configured: use --kubeconfig, set KUBECONFIG, or run in a pod; --default shows the built-in"},
		{[]string{"config", "n1", "--default"}, 2, "", "only one of NODE"},
		{[]string{"cleanup", "all"}, 1, "", "no cluster is configured"},
		{[]string{"cleanup", "node"}, 2, "", "cleanup node: specify the Nodes"},
		{[]string{"evictions"}, 1, "", "no cluster is configured"},
		{[]string{"config", "--config=/nonexistent"}, 2, "", "/nonexistent"},
		{[]string{"config", "n1", "worker"}, 2, "", "accepts at most 1 arg(s), received 2"},
		{[]string{"staus"}, 2, "", "taintlet: unknown command \"staus\" for \"kubectl taintlet\"\n  Did you mean this?\n  \tstatus\nSee kubectl taintlet help.\n"},
		{[]string{"check", "--namespace="}, 2, "", "--namespace: specify the namespace of the agents"},
		{[]string{"status", "--watch", "--wait"}, 2, "", "--watch and --wait exclude each other"},
		{[]string{"status", "Worker_1"}, 2, "", `node "Worker_1": the name of a Node has lower-case letters, digits, - and . only`},
		{[]string{"status", "a", "-l", "b=c"}, 2, "", "--selector and names of Nodes exclude each other"},
		{[]string{"status", "-l", "a in b"}, 2, "", "--selector: "},
	} {
		code, stdout, stderr := program.Call(t, c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
			t.Errorf("%q: exit code %d, %q, %q; want %d, %q, %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}

// kubeconfigOf is the path of a kubeconfig for an API server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "` + server + `"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kubectl completes the words after "kubectl taintlet" by a program of a name that it
// knows. A link of that name to this program is one.
func TestCompletesForKubectl(t *testing.T) {
	link := filepath.Join(t.TempDir(), completer)
	if err := os.Symlink(program.Path(t), link); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}, {"metadata": {"name": "other"}}]}`))
	}))
	defer server.Close()
	kubeconfig := kubeconfigOf(t, server.URL)
	for line, want := range map[string][]string{
		"":                 {"check", "cleanup", "completion", "config", "evictions", "help", "status", "version"},
		"st":               {"status"},
		"status --wai":     {"--wait"},
		"status --output ": {"table", "wide", "name", "json", "yaml", "jsonpath="},
		"status --kubeconfig=" + kubeconfig + " n1 n": {"n2"},
		"cleanup ": {"all", "node", "stale"},
		"cleanup --kubeconfig=" + kubeconfig + " node n1 n": {"n2"},
		"cleanup --kubeconfig=" + kubeconfig + " all n":     nil,
		"completion ": {"bash", "fish", "powershell", "zsh"},
	} {
		_, out, _ := process.Call(t, link, strings.Split(line, " ")...)
		var got []string
		for offered := range strings.Lines(out) {
			if word, _, _ := strings.Cut(strings.TrimSpace(offered), "\t"); !strings.HasPrefix(word, ":") {
				got = append(got, word)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
