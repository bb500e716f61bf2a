package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The types of https://github.com/opencontainers/image-spec that a release needs.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

// layout is an OCI layout: a folder of blobs, each named by its digest.
type layout struct{ dir string }

func newLayout(dir string) (layout, error) {
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return layout{}, err
	}
	return layout{dir}, os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
}

func (l layout) blob(media string, content []byte) (descriptor, error) {
	sum := sum256(content)
	return descriptor{MediaType: media, Digest: "sha256:" + sum, Size: len(content)},
		os.WriteFile(filepath.Join(l.dir, "blobs", "sha256", sum), content, 0o644)
}

func (l layout) json(media string, value any) (descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(media, content)
}

// nameAnnotation is where containerd looks for the name of an image that it imports.
const nameAnnotation = "io.containerd.image.name"

// tag makes an index or a manifest the layout's only entry. The name is that of an
// image; without one the entry has only a tag.
func (l layout) tag(entry descriptor, name, tag string) error {
	entry.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag}
	if name != "" {
		entry.Annotations[nameAnnotation] = name + ":" + tag
	}
	content, err := json.Marshal(index{2, indexType, []descriptor{entry}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.dir, "index.json"), content, 0o644)
}

// tagged returns the entry that tag made.
func tagged(dir string) (descriptor, error) {
	content, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return descriptor{}, err
	}
	var i index
	if err := json.Unmarshal(content, &i); err != nil {
		return descriptor{}, err
	}
	if len(i.Manifests) != 1 {
		return descriptor{}, fmt.Errorf("%s has %d entries", dir, len(i.Manifests))
	}
	return i.Manifests[0], nil
}

// archive returns the layout as one file, which `ctr images import` and
// `podman load` read.
func (l layout) archive(created time.Time) ([]byte, error) {
	var files []file
	err := fs.WalkDir(os.DirFS(l.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(l.dir, name))
		files = append(files, file{name, 0o644, content})
		return err
	})
	if err != nil {
		return nil, err
	}
	return tarball(files, created)
}

func sum256(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
