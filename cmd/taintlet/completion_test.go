package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script writes the completion script of a shell into a file of that name.
func script(t *testing.T, shell, name string) string {
	t.Helper()
	code, text, stderr := called(t, "taintlet", "completion", shell)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A bash that has sourced the script offers what can be typed next.
func TestBashCompletes(t *testing.T) {
	path := script(t, "bash", "taintlet.bash")
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "my config.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// As bash splits the words: = is one by itself.
	for words, want := range map[string][]string{
		"taintlet ":                   firstWords(verbs()),
		"taintlet c":                  {"check", "config", "cleanup", "completion"},
		"taintlet --dry":              {"--dry-run"},
		"taintlet --dry-run = ":       {"none", "client", "server"},
		"taintlet --dry-run = c":      {"client"},
		"taintlet --log-format j":     {"json"},
		"taintlet cleanup ":           append([]string{"node", "stale", "all"}, "--help", "--dry-run", "--config", "--kubeconfig", "--context", "--lifecycle-controller"),
		"taintlet cleanup s":          {"stale"},
		"taintlet cleanup all --dry":  {"--dry-run"},
		"taintlet cleanup all --list": nil, // the agent's
		"taintlet once -":             {"--help", "--output", "--record", "--for", "--config", "--node-name", "--host-root", "--procfs", "--sysfs", "--lifecycle-controller"},
		"taintlet once --output = ":   {"table", "json", "yaml"},
		"taintlet once --output y":    {"yaml"},
		"taintlet config --config my": {"my config.yaml"},
		"taintlet once --config = my": {"my config.yaml"},
		"taintlet help wa":            {"watch"},
		"taintlet completion ":        {"bash", "zsh", "fish", "--help"},
	} {
		command := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-euc", `
source "$1"
compopt() { :; } # only readline's completion has it
read -ra COMP_WORDS <<<"$2"
case "$2" in *" ") COMP_WORDS+=("") ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
complete -p taintlet | grep -q -- '-F _taintlet taintlet'
_taintlet || true # nothing to offer is no failure
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"`, "bash", path, words)
		command.Dir = folder
		out, err := command.CombinedOutput()
		got := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q (%v), want %q", words, got, err, want)
		}
	}
}

// Other shells take their scripts, and know every verb and flag.
func TestOtherShellsComplete(t *testing.T) {
	for shell, check := range map[string]struct {
		file, command string
	}{
		"zsh":  {"_taintlet", `autoload -Uz compinit && compinit -D -u && source "$1" && [[ $_comps[taintlet] = _taintlet ]] && functions _taintlet`},
		"fish": {"taintlet.fish", `source $argv[1]; complete -C 'taintlet '; complete -C 'taintlet cleanup '; complete -C 'taintlet once --output='; complete -C 'taintlet --'`},
	} {
		t.Run(shell, func(t *testing.T) {
			path := script(t, shell, check.file)
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%s is not on this host, so nobody can tell whether it takes the script", shell)
			}
			args := []string{"-f", "-c", check.command, shell, path}
			if shell == "fish" {
				args = []string{"-N", "-c", check.command, path}
			}
			out, err := exec.CommandContext(t.Context(), shell, args...).CombinedOutput() //nolint:gosec // a shell
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, word := range []string{"once", "cleanup", "stale", "dry-run", "log-format", "yaml"} {
				if !strings.Contains(string(out), word) {
					t.Errorf("no %s:\n%s", word, out)
				}
			}
		})
	}
}
