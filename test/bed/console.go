package bed

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
)

// Console is a folder with deploy/, and with kubectl and helm on the PATH.
type Console struct {
	// Dir is the folder. What is put into its folder bin is on the PATH.
	Dir string

	t    *testing.T
	envs []string
}

// NewConsole returns a Console of an administrator of the cluster.
func NewConsole(t *testing.T, c *cluster.Cluster) *Console {
	t.Helper()
	k := &Console{t: t, Dir: t.TempDir()}
	kubectl, err := cluster.Kubectl(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(k.Dir, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"bin/kubectl": kubectl, "bin/helm": Helm(t), "deploy": deploy} {
		if err := os.Symlink(target, filepath.Join(k.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	k.envs = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t, c.Admin()), "HOME="+k.Dir, "PATH="+filepath.Join(k.Dir, "bin")+":"+os.Getenv("PATH"))
	return k
}

// Run runs a script that must not fail and returns what it says.
func (k *Console) Run(script string) string {
	k.t.Helper()
	command := exec.CommandContext(k.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env = k.Dir, k.envs
	out, err := command.CombinedOutput()
	if err != nil {
		k.t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return string(out)
}

// Scripts returns the scripts of a page of the documentation, in its order. The page is a path below
// the repository's root.
func Scripts(t *testing.T, page string) []string {
	t.Helper()
	return Blocks(t, page, "sh")
}

// Blocks returns the blocks of a page in a language, such as yaml, in its order.
func Blocks(t *testing.T, page, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, match[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return blocks
}
