package neighbours

import (
	"fmt"
	"go/version"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/process"
)

const karpenterModule = "sigs.k8s.io/karpenter"

// karpenterSource returns the folder with the source of Karpenter, and the flags with which a
// go command builds it. Karpenter asks for a patch of Go that a machine may not have yet. An
// older patch then builds a copy of the source, whose go.mod asks for no patch.
func karpenterSource(t *testing.T) (folder string, flags []string) {
	t.Helper()
	mod := readFile(t, "karpenter/go.mod")
	asked := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(mod)
	required := regexp.MustCompile(`(?m)^\s+` + karpenterModule + ` (v\S+)$`).FindStringSubmatch(mod)
	if asked == nil || required == nil {
		t.Fatalf("karpenter/go.mod has no line of go, or none of %s", karpenterModule)
	}
	if version.Compare(runtime.Version(), "go"+asked[1]) >= 0 {
		folder, err := process.ModuleFolder(t.Context(), "karpenter", karpenterModule)
		if err != nil {
			t.Fatal(err)
		}
		return folder, nil
	}
	folder = copyModule(t, karpenterModule+"@"+required[1], asked[1])
	mod = strings.Replace(mod, asked[0], "go "+strings.TrimPrefix(runtime.Version(), "go"), 1) + fmt.Sprintf("\nreplace %s => %s\n", karpenterModule, folder)
	modfile := filepath.Join(t.TempDir(), "go.mod")
	writeFile(t, modfile, mod)
	writeFile(t, strings.TrimSuffix(modfile, ".mod")+".sum", readFile(t, "karpenter/go.sum"))
	return folder, []string{"-modfile=" + modfile}
}

// copyModule copies a module, so that its go.mod asks for the language of that Go only. The
// copy stays in the user's cache, or Go would build it anew each time.
func copyModule(t *testing.T, module, asked string) (folder string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(cache, "taintlet", filepath.Base(module))
	mod := filepath.Join(folder, "go.mod")
	if _, err := os.Stat(filepath.Join(folder, "whole")); err == nil {
		return folder
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(download(t, module))); err != nil {
		t.Fatal(err)
	}
	writeFile(t, mod, strings.Replace(readFile(t, mod), "\ngo "+asked+"\n", "\ngo "+strings.TrimPrefix(version.Lang("go"+asked), "go")+"\n", 1))
	writeFile(t, filepath.Join(folder, "whole"), "")
	return folder
}

// download returns the folder of a module in the module cache. If the module asks for a newer
// Go, the go command ends with an error, and the folder is there all the same.
func download(t *testing.T, module string) (folder string) {
	t.Helper()
	cache, err := process.Output(t.Context(), "", nil, "go", "env", "GOMODCACHE")
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(strings.TrimSpace(cache), module)
	_, err = process.Output(t.Context(), t.TempDir(), nil, "go", "mod", "download", module)
	if _, missing := os.Stat(folder); missing != nil {
		t.Fatalf("%v: %v", missing, err)
	}
	return folder
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of the checkout
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
