package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// program is the agent, built once for all tests.
var program = process.SharedProgram{Build: process.BuildAgent}

func TestMain(m *testing.M) {
	code := m.Run()
	program.Remove()
	os.Exit(code)
}

// Every verb ends with the codes that its help has. Those of a cluster are
// tested in test/integration.
func TestExitCodes(t *testing.T) {
	sick := filepath.Join(t.TempDir(), "sick.yaml")
	if err := os.WriteFile(sick, []byte("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\npid: {usedPercent: 0.001, debounce: {clearFactor: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "/nonexistent")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // parts of it
	}{
		{[]string{"--version"}, 0, "taintlet version ", ""},
		{[]string{"cleanup", "all"}, 1, "", "no cluster is configured"},
		{[]string{"cleanup", "all", "--context=missing"}, 1, "", `context "missing" does not exist`},
		{[]string{"once", "--config=/nonexistent"}, 2, "", "/nonexistent"},
		{[]string{"once", "--config=" + sick}, 3, "PIDPressure         Degraded", ""},
		{[]string{"clean"}, 2, "", `unknown command "clean" for "taintlet"`},
		{[]string{"once", "--watch", "-o=json"}, 2, "", "--watch and --output exclude each other"},
		{[]string{"once", "twice"}, 2, "", `unknown command "twice" for "taintlet once"`},
		{[]string{"once", "--twice"}, 2, "", "unknown flag: --twice\nSee taintlet help once.\n"},
		{[]string{"--log-format=xml"}, 2, "", "must be one of text, json"},
	} {
		code, stdout, stderr := program.Call(t, c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
			t.Errorf("%q: exit code %d, %q, %q; want %d, %q, %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}

// Without a flag the kubeconfig is that at home.
func TestFindsTheKubeconfigAtHome(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "")
	home := t.TempDir()
	t.Setenv("HOME", home)
	text := "apiVersion: v1\nkind: Config\nclusters:\n- {name: a, cluster: {server: 'https://127.0.0.1:1'}}\ncontexts:\n- {name: a, context: {cluster: a}}\ncurrent-context: a\n"
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".kube/config"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := program.Call(t, "cleanup", "all"); code != 1 || !strings.Contains(stderr, "127.0.0.1:1: connect: connection refused") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// An audit log names the program and its version, not a file.
func TestRequestsNameTheProgramAndItsVersion(t *testing.T) {
	restConfig, err := apiConfig(fixtures.HostileServer(t, false, command.UserAgent()))
	if err != nil {
		t.Fatal(err)
	}
	if want := "taintlet/" + command.Version() + " ("; !strings.HasPrefix(restConfig.UserAgent, want) {
		t.Errorf("%q, want %q", restConfig.UserAgent, want)
	}
}
