package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A verb that people run finds the cluster that kubectl would find.
func TestFindsTheClusterAsKubectlDoes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	home := t.TempDir()
	write := func(path, server string) string {
		t.Helper()
		text := "apiVersion: v1\nkind: Config\nclusters:\n- {name: a, cluster: {server: 'https://" + server + "'}}\n- {name: b, cluster: {server: 'https://" + server + "-b'}}\n" +
			"contexts:\n- {name: a, context: {cluster: a}}\n- {name: b, context: {cluster: b}}\ncurrent-context: a\n"
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	given, inEnv := write(filepath.Join(home, "given"), "given"), write(filepath.Join(home, "env"), "env")
	t.Setenv("HOME", home)
	find := func(f clusterFlags, want string) {
		t.Helper()
		restConfig, err := f.restConfig()
		if err != nil || restConfig.Host != want {
			t.Errorf("%+v: %v %v, want %s", f, restConfig, err, want)
		}
	}
	t.Setenv("KUBECONFIG", "")
	if restConfig, err := (&clusterFlags{}).restConfig(); err == nil {
		t.Errorf("without any: %v", restConfig)
	}
	// client-go asks for the home once in a process.
	write(filepath.Join(home, ".kube/config"), "127.0.0.1:1")
	if code, _, stderr := called(t, "taintlet", "cleanup", "all"); code != 1 || !strings.Contains(stderr, "127.0.0.1:1: connect: connection refused") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	t.Setenv("KUBECONFIG", inEnv)
	find(clusterFlags{}, "https://env")
	find(clusterFlags{context: "b"}, "https://env-b")
	find(clusterFlags{kubeconfig: given}, "https://given")
	find(clusterFlags{kubeconfig: given, context: "b"}, "https://given-b")
}

// An audit log names the program and its version, not a file.
func TestRequestsNameTheProgramAndItsVersion(t *testing.T) {
	kubeconfig := hostileServer(t, false)
	asAgent, err := apiConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	asVerb, err := (&clusterFlags{kubeconfig: kubeconfig}).restConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{asAgent.UserAgent, asVerb.UserAgent} {
		if !strings.HasPrefix(agent, "taintlet/"+buildVersion()+" (") {
			t.Errorf("%q", agent)
		}
	}
}
