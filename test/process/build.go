package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/taintlet/taintlet"

// Lean returns the flags that keep the agent small: dependencies are compiled
// without inlining, and of the two HTTP/2s only the one that client-go uses is
// there. The Makefile and the Dockerfile say the same.
func Lean() []string {
	return []string{"-tags=nethttpomithttp2", "-gcflags=all=-l", "-gcflags=std=", "-gcflags=" + module + "/...="}
}

// BuildOptions says what `go build` is told besides.
type BuildOptions struct {
	Race    bool // with the race detector
	Release bool // as `make build`: static, without symbols and paths
	// Overlay is a file that names source files to use in place of others, as in
	// `go help build`; empty: none.
	Overlay string
}

// BuildAgent builds taintlet into the folder, and returns the path of the program.
func BuildAgent(ctx context.Context, folder string, options BuildOptions) (string, error) {
	return program(ctx, "cmd/taintlet", folder, options, Lean()...)
}

// BuildPlugin builds kubectl-taintlet into the folder, and returns the path of the
// program.
func BuildPlugin(ctx context.Context, folder string, options BuildOptions) (string, error) {
	return program(ctx, "cmd/kubectl-taintlet", folder, options)
}

// BuildProgram builds another main package of this module, such as test/demo.
func BuildProgram(ctx context.Context, source, folder string, options BuildOptions) (string, error) {
	return program(ctx, source, folder, options)
}

// BuildOther builds the program of another project into the folder, and returns its path. The
// nested module says which version. It is static as releases are, and stripped as taintlet is.
func BuildOther(ctx context.Context, nested, source, folder string) (string, error) {
	program := filepath.Join(folder, path.Base(source))
	_, err := Output(ctx, nested, []string{"CGO_ENABLED=0", "GOTMPDIR=" + folder}, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, source)
	return program, err
}

// ModuleFolder is where the source of a module is, at the version that the nested module has. It is
// downloaded if nothing was built of it yet.
func ModuleFolder(ctx context.Context, nested, module string) (string, error) {
	said, err := Output(ctx, nested, nil, "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	err = json.Unmarshal([]byte(said), &m)
	return m.Dir, err
}

func program(ctx context.Context, source, folder string, options BuildOptions, flags ...string) (string, error) {
	program := filepath.Join(folder, path.Base(source))
	// The version control's stamp may fail where somebody else owns the files.
	args := append([]string{"build", "-buildvcs=false", "-o", program}, flags...)
	env := append(os.Environ(), "GOTMPDIR="+folder) // an interrupted build may leave files
	if options.Race {
		args = append(args, "-race")
	}
	if options.Release {
		args = append(args, "-trimpath", "-ldflags=-s -w")
		env = append(env, "CGO_ENABLED=0")
	}
	if options.Overlay != "" {
		args = append(args, "-overlay="+options.Overlay)
	}
	var output strings.Builder
	command := CommandContext(ctx, "go", append(args, path.Join(module, source))...)
	command.Env, command.Stdout, command.Stderr = env, &output, &output
	if err := Run(command); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", source, errors.Join(err, ctx.Err()), &output)
	}
	return program, nil
}

// SharedProgram is a program for all tests of a package, built by the first that asks for
// its path.
type SharedProgram struct {
	// Build is BuildAgent or BuildPlugin.
	Build   func(ctx context.Context, folder string, options BuildOptions) (string, error)
	Options BuildOptions

	once   sync.Once
	folder string
	path   string
	err    error
}

// Path returns the path of the program.
func (s *SharedProgram) Path(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		if s.folder, s.err = os.MkdirTemp("", "taintlet-program-"); s.err == nil { //nolint:usetesting // it outlives the test
			s.path, s.err = s.Build(context.WithoutCancel(t.Context()), s.folder, s.Options)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.path
}

// Remove removes the program, if it was built.
func (s *SharedProgram) Remove() {
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}
