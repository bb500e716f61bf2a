package footprint

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

const exporterModule = "github.com/prometheus/node_exporter"

// built is a program that is ready to be measured.
type built struct {
	Path, Version string
	// Binary is its size, Image that of an image of it and its licence as a registry
	// has it: compressed. Both are bytes.
	Binary, Image int64
}

// buildAll builds both programs into the folder, and the control plane. The agent is
// built as for its image; a test of package build compares the flags.
func buildAll(ctx context.Context, o *Options, folder string) (agent, exporter built, err error) {
	if _, err := cluster.Build(ctx, os.Stderr); err != nil {
		return agent, exporter, err
	}
	o.Say("both programs are built")
	agent.Version = o.Commit
	if agent.Path, err = process.BuildAgent(ctx, folder, process.BuildOptions{Release: true}); err != nil {
		return agent, exporter, err
	}
	nested := filepath.Join(o.Module, "test", "exporter")
	if exporter.Path, err = process.BuildOther(ctx, nested, exporterModule, folder); err != nil {
		return agent, exporter, err
	}
	text, err := process.Output(ctx, nested, nil, "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", exporterModule)
	if err != nil {
		return agent, exporter, err
	}
	version, source, _ := strings.Cut(strings.TrimSpace(text), " ")
	exporter.Version = version
	return agent, exporter, errors.Join(agent.weigh(filepath.Join(o.Module, "LICENSE")), exporter.weigh(filepath.Join(source, "LICENSE")))
}

// weigh reads the sizes.
func (b *built) weigh(licence string) error {
	var image counter
	packed := gzip.NewWriter(&image)
	archive := tar.NewWriter(packed)
	for _, path := range []string{b.Path, licence} {
		content, err := os.ReadFile(path) //nolint:gosec // our own file
		if err != nil {
			return err
		}
		if path == b.Path {
			b.Binary = int64(len(content))
		}
		header := &tar.Header{Name: filepath.Base(path), Mode: 0o755, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	err := errors.Join(archive.Close(), packed.Close())
	b.Image = int64(image)
	return err
}

// counter counts what is written to it.
type counter int64

// Write counts the bytes.
func (c *counter) Write(text []byte) (int, error) {
	*c += counter(len(text))
	return len(text), nil
}
