package process

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAgentIsBuiltAsAsked(t *testing.T) {
	race := map[bool]string{true: "true"}[RaceEnabled] // without a C compiler no test has it
	for name, test := range map[string]struct {
		options BuildOptions
		want    map[string]string // settings of the build
	}{
		"plain":   {BuildOptions{}, map[string]string{"-race": "", "-trimpath": "", "vcs": "", "-tags": "nethttpomithttp2"}},
		"race":    {BuildOptions{Race: RaceEnabled}, map[string]string{"-race": race, "-trimpath": "", "vcs": ""}},
		"release": {BuildOptions{Release: true}, map[string]string{"-race": "", "-trimpath": "true", "CGO_ENABLED": "0", "vcs": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			agent, err := BuildAgent(t.Context(), dir, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if agent != filepath.Join(dir, "taintlet") {
				t.Errorf("built %s in %s", agent, dir)
			}
			info, err := buildinfo.ReadFile(agent)
			if err != nil {
				t.Fatal(err)
			}
			settings := map[string]string{}
			for _, setting := range info.Settings {
				settings[setting.Key] = setting.Value
			}
			for key, want := range test.want {
				if settings[key] != want {
					t.Errorf("built with %s=%s, want %q", key, settings[key], want)
				}
			}
			if stripped := hasNoSymbols(t, agent); stripped != test.options.Release {
				t.Errorf("without symbols: %t", stripped)
			}
			if out, err := exec.CommandContext(t.Context(), agent, "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "taintlet ") {
				t.Errorf("version: %s, %v", out, err)
			}
		})
	}
}

// What is tested is what is shipped.
func TestTheAgentIsCompiledAlikeEverywhere(t *testing.T) {
	for _, file := range []string{"Makefile", "Dockerfile"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(Lean(), " "); !strings.Contains(string(text), " "+want) {
			t.Errorf("%s does not have %s", file, want)
		}
	}
}

func hasNoSymbols(t *testing.T, path string) bool {
	t.Helper()
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close() //nolint:errcheck // nothing was written
	_, err = program.Symbols()
	return errors.Is(err, elf.ErrNoSymbols)
}

func TestAFailedBuildIsTold(t *testing.T) {
	if _, err := BuildProgram(t.Context(), "test/no-such-program", t.TempDir(), BuildOptions{}); err == nil || !strings.Contains(err.Error(), "build test/no-such-program: exit status 1\n") ||
		!strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := BuildAgent(ended, dir, BuildOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
