package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/test/process"
)

// program builds the agent once for all tests, and returns its path.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	folder string
	built  = sync.OnceValues(func() (string, error) {
		return process.BuildAgent(context.Background(), folder, process.BuildOptions{})
	})
)

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "taintlet-cmd-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	os.Exit(code)
}

// called runs the program under a name, and returns its exit code and output.
func called(t *testing.T, name string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(program(t), link); err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	command := exec.CommandContext(t.Context(), link, args...) //nolint:gosec // our own binary
	command.Stdout, command.Stderr = &out, &errors
	return codeOf(t, command.Run()), out.String(), errors.String()
}

func codeOf(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// Whoever asks for help gets it on the standard output, by each way to ask.
func TestHelp(t *testing.T) {
	for _, v := range verbs() {
		code, help, stderr := called(t, "taintlet", strings.Fields("help "+v.name)...)
		if code != 0 || stderr != "" || help != v.help("taintlet") {
			t.Errorf("help %s: exit code %d, %q, %q", v.name, code, help, stderr)
		}
		for _, flag := range []string{"--help", "-h"} {
			if code, out, stderr := called(t, "taintlet", strings.Fields(v.name+" "+flag)...); code != 0 || out != help || stderr != "" {
				t.Errorf("%s %s: exit code %d, %q, %q", v.name, flag, code, out, stderr)
			}
		}
		if v.summary == "" || len(v.examples) == 0 || strings.HasSuffix(v.summary, ".") {
			t.Errorf("%q: summary %q, %d examples", v.name, v.summary, len(v.examples))
		}
		for _, e := range v.examples {
			if !strings.Contains(e.command, strings.TrimSpace("taintlet "+v.name)) || !strings.Contains(help, "\n  "+e.command+"\n") {
				t.Errorf("%q: example %q", v.name, e.command)
			}
			const plugin = "kubectl taintlet"
			if as := strings.Replace(e.command, "taintlet ", plugin+" ", 1); !strings.Contains(v.help(plugin), "\n  "+as+"\n") {
				t.Errorf("%q: no example %q for the plugin", v.name, as)
			}
		}
		for line := range strings.Lines(help) {
			if len([]rune(line)) > helpWidth {
				t.Errorf("%q: a line of %d columns: %s", v.name, len([]rune(line)), line)
			}
		}
	}
}

// As a plugin of kubectl the help names what people type. Without arguments
// it is help, and not an agent on somebody's laptop.
func TestPluginOfKubectl(t *testing.T) {
	code, help, _ := called(t, "kubectl-taintlet")
	if code != 0 || !strings.Contains(help, "\n  kubectl taintlet VERB [flags]\n") || strings.Contains(help, "\n  taintlet ") {
		t.Errorf("exit code %d, %s", code, help)
	}
	code, help, _ = called(t, "kubectl-taintlet", "help", "cleanup")
	if code != 0 || strings.Contains(help, "\n  taintlet ") || !strings.Contains(help, "\n  kubectl taintlet cleanup all --dry-run\n") {
		t.Errorf("exit code %d, %s", code, help)
	}
	code, _, stderr := called(t, "kubectl-taintlet", "clean")
	if code != 2 || !strings.Contains(stderr, "See kubectl taintlet help.") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// Every verb ends with the codes that its help has. Those of a cluster are
// tested in test/integration.
func TestExitCodes(t *testing.T) {
	sick := filepath.Join(t.TempDir(), "sick.yaml")
	if err := os.WriteFile(sick, []byte("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\npid: {usedPercent: 0.001, clearFactor: 1}\n"), 0o600); err != nil {
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
		{[]string{"version"}, 0, "taintlet ", ""},
		{[]string{"config"}, 0, "kind: TaintletConfiguration", ""},
		{[]string{"config", "--evictions"}, 1, "", "no cluster is known"},
		{[]string{"cleanup", "all"}, 1, "", "no cluster is known"},
		{[]string{"cleanup", "all", "--context=missing"}, 1, "", `context "missing" does not exist`},
		{[]string{"config", "--config=/nonexistent"}, 2, "", "/nonexistent"},
		{[]string{"watch", "--config=/nonexistent"}, 2, "", "/nonexistent"},
		{[]string{"once", "--config=" + sick}, 3, "PIDPressure         Degraded", ""},
	} {
		code, stdout, stderr := called(t, "taintlet", c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
			t.Errorf("%q: exit code %d, %q, %q; want %d, %q, %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}
