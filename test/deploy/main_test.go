// Package deploy renders the manifests of deploy/ and installs them on a real
// API server: what they let the agent do, what they keep it from doing, and
// that the commands of deploy/README.md work.
package deploy

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	chart     = "../../deploy/helm/taintlet"
	namespace = "taintlet-system"
	account   = "taintlet"
	user      = "system:serviceaccount:" + namespace + ":" + account
)

// shared has the chart installed, with two slots, by the first test that needs
// it.
var shared installation

func TestMain(m *testing.M) { os.Exit(shared.cluster.Run(m)) }

// helm returns the path of helm, built once and kept in Go's cache. Without
// TAINTLET_REQUIRE=controlplane the test is skipped: that first build takes
// minutes.
func helm(t *testing.T) string {
	t.Helper()
	cluster.SkipUnlessRequired(t)
	path, err := helmOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var helmOnce = sync.OnceValues(func() (string, error) {
	command := exec.Command("go", "tool", "-modfile=test/helm/go.mod", "-n", "helm")
	command.Dir = "../.."
	command.Stderr = os.Stderr
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
})

// template renders the chart as deploy/generate does, with more values, and
// returns the text. On failure it returns what helm says.
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"template", "taintlet", chart, "--namespace", namespace, "--kube-version", "1.36"}, args...)
	out, err := exec.CommandContext(t.Context(), helm(t), args...).CombinedOutput()
	return string(out), err
}

// render is template for values that must be good.
func render(t *testing.T, args ...string) string {
	t.Helper()
	text, err := template(t, args...)
	if err != nil {
		t.Fatalf("helm template %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return text
}

// valuesFile writes values for helm's -f.
func valuesFile(t *testing.T, values any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.json")
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeManifest puts a rendered manifest where cluster.Apply can read it.
func writeManifest(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// apply applies a rendered manifest to the cluster.
func apply(ctx context.Context, t *testing.T, c *cluster.Cluster, text string) {
	t.Helper()
	if err := c.Apply(ctx, writeManifest(t, text)); err != nil {
		t.Fatal(err)
	}
}
