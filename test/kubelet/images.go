package kubelet

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/taintlet/taintlet/test/process"
)

// SandboxImage is what containerd starts in the sandbox of each pod. No registry
// is asked for it: Options.Pods makes it.
const SandboxImage = "localhost/taintlet-test/pause:1"

// ImportImage gives containerd the images of an archive, as `docker save` and
// BuildImage write it, under the names that are in there.
func (k *Kubelet) ImportImage(ctx context.Context, archive string) error {
	var complaints bytes.Buffer
	command := exec.CommandContext(ctx, "ctr", "--namespace=k8s.io", "images", "import", archive)
	command.Stdout, command.Stderr = &complaints, &complaints
	running, err := k.StartInside("ctr", command, "")
	if err == nil {
		err = running.Wait()
	}
	if err != nil {
		return fmt.Errorf("import %s: %w\n%s", archive, err, complaints.String())
	}
	return nil
}

// importSandboxImage builds the program in pause/ and an image of nothing else.
func (k *Kubelet) importSandboxImage(ctx context.Context) error {
	archive, err := PackSandbox(ctx, k.dir)
	if err != nil {
		return err
	}
	return k.ImportImage(ctx, archive)
}

// ImportProgram builds a program of this module and gives containerd an image of that name
// with nothing else.
func (k *Kubelet) ImportProgram(ctx context.Context, source, image string) error {
	packed, err := PackProgram(ctx, k.dir, source, image)
	if err != nil {
		return err
	}
	return k.ImportImage(ctx, packed)
}

// PackSandbox is PackProgram for what a containerd without a registry starts in the sandbox
// of each pod, SandboxImage.
func PackSandbox(ctx context.Context, dir string) (archive string, err error) {
	return PackProgram(ctx, dir, "test/kubelet/pause", SandboxImage)
}

// PackProgram builds a program of this module and writes an archive of an image of that name
// with nothing else into dir.
func PackProgram(ctx context.Context, dir, source, image string) (archive string, err error) {
	program, err := process.BuildProgram(ctx, source, dir, process.BuildOptions{Release: true})
	if err != nil {
		return "", err
	}
	return packBinary(dir, program, image)
}

// ImportBinary gives containerd an image of that name with nothing but a static program.
func (k *Kubelet) ImportBinary(ctx context.Context, program, image string) error {
	packed, err := packBinary(k.dir, program, image)
	if err != nil {
		return err
	}
	return k.ImportImage(ctx, packed)
}

func packBinary(dir, program, image string) (packed string, err error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	archive, err := archiveOf(image, filepath.Base(program), content)
	if err != nil {
		return "", fmt.Errorf("make the image %s: %w", image, err)
	}
	packed = filepath.Join(dir, filepath.Base(program)+".tar")
	return packed, os.WriteFile(packed, archive, 0o600)
}

// archiveOf is an image with one program, as `docker save` would write it.
func archiveOf(image, name string, program []byte) ([]byte, error) {
	layer, err := tarOf(map[string][]byte{name: program})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + name}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return tarOf(map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar": layer})
}

func tarOf(files map[string][]byte) ([]byte, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for name, content := range files {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(content); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return archive.Bytes(), errors.Join(err)
}
