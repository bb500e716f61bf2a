package command

import (
	"os"
	"path/filepath"
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
	find := func(f Cluster, want string) {
		t.Helper()
		restConfig, err := f.RestConfig()
		if err != nil || restConfig.Host != want {
			t.Errorf("%+v: %v %v, want %s", f, restConfig, err, want)
		}
	}
	t.Setenv("KUBECONFIG", "")
	if restConfig, err := (&Cluster{}).RestConfig(); err == nil {
		t.Errorf("without any: %v", restConfig)
	}
	t.Setenv("KUBECONFIG", inEnv)
	find(Cluster{}, "https://env")
	find(Cluster{context: "b"}, "https://env-b")
	find(Cluster{kubeconfig: given}, "https://given")
	find(Cluster{kubeconfig: given, context: "b"}, "https://given-b")
}
