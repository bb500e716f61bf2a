package kubelet

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
)

// archive is what `docker save` writes too: a manifest, a configuration, and
// layers that are not compressed.
type archive struct {
	tags   []string
	config config
	size   int64             // of the layers, in bytes
	files  map[string]member // of all layers
}

type config struct {
	Architecture string
	Config       struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

type member struct {
	header  *tar.Header
	content []byte
}

func readArchive(t *testing.T, path string) *archive {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	members := readTar(t, file)
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	decode(t, members["manifest.json"].content, &manifest)
	if len(manifest) != 1 {
		t.Fatalf("the archive has %d images, want 1", len(manifest))
	}
	a := &archive{tags: manifest[0].RepoTags, files: map[string]member{}}
	decode(t, members[manifest[0].Config].content, &a.config)
	for _, name := range manifest[0].Layers {
		layer := members[name].content
		a.size += int64(len(layer))
		for name, member := range readTar(t, bytes.NewReader(layer)) {
			a.files[name] = member
		}
	}
	return a
}

func readTar(t *testing.T, r io.Reader) map[string]member {
	t.Helper()
	members := map[string]member{}
	for reader := tar.NewReader(r); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return members
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		members[header.Name] = member{header, content}
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}
