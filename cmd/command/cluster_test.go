package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
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
	find := func(want string, args ...string) {
		t.Helper()
		var f Cluster
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Add(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		restConfig, err := f.RestConfig()
		if restConfig == nil {
			restConfig = &rest.Config{}
		}
		if got := strings.TrimSpace(fmt.Sprint(restConfig.Host, " ", restConfig.Impersonate.UserName, restConfig.Impersonate.Groups, " ", restConfig.Timeout, " ", err)); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	t.Setenv("KUBECONFIG", "")
	find("[] 0s " + ErrNoCluster.Error())
	t.Setenv("KUBECONFIG", inEnv)
	find("https://env [] 0s <nil>")
	find("https://env-b [] 0s <nil>", "--context=b")
	find("https://env-b [] 0s <nil>", "--cluster=b")
	find("https://other [] 0s <nil>", "--server=https://other")
	find("https://env u[g h] 7s <nil>", "--as=u", "--as-group=g", "--as-group=h", "--request-timeout=7s")
	find("https://given [] 0s <nil>", "--kubeconfig="+given)
	find("https://given-b [] 0s <nil>", "--kubeconfig="+given, "--context=b")
}
