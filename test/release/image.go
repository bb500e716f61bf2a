package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// image writes the layout taintlet-image with an image for each architecture, as a folder
// to be pushed and as one file to be imported. The
// Dockerfile makes the same files and settings for those who build the image themselves.
func (r *release) image(work string) error {
	l, err := newLayout(filepath.Join(r.out, "taintlet-image"))
	if err != nil {
		return err
	}
	images := index{SchemaVersion: 2, MediaType: indexType}
	for _, host := range r.hosts {
		program := filepath.Join(work, "taintlet-"+host.Architecture)
		if err := r.compile(program, host, "taintlet", process.Lean()...); err != nil {
			return err
		}
		if err := r.sbom("taintlet-image-"+host.OS+"-"+host.Architecture, program); err != nil {
			return err
		}
		image, err := r.agentImage(l, program, host.Architecture)
		if err != nil {
			return err
		}
		image.Platform = &host
		images.Manifests = append(images.Manifests, image)
	}
	entry, err := l.json(indexType, images)
	if err != nil {
		return err
	}
	if err := l.tag(entry, r.name, r.version); err != nil {
		return err
	}
	archive, err := l.archive(r.created)
	if err != nil {
		return err
	}
	return r.write("taintlet-image-"+r.version+".oci.tar", archive)
}

func (r *release) agentImage(l layout, program, arch string) (descriptor, error) {
	files, err := r.withLicence(program, "taintlet")
	if err != nil {
		return descriptor{}, err
	}
	plain, err := tarball(files, r.created)
	if err != nil {
		return descriptor{}, err
	}
	packed, err := zipped(plain)
	if err != nil {
		return descriptor{}, err
	}
	layer, err := l.blob(layerType, packed)
	if err != nil {
		return descriptor{}, err
	}
	config, err := l.json(configType, r.imageConfig(arch, "sha256:"+sum256(plain)))
	if err != nil {
		return descriptor{}, err
	}
	return l.json(manifestType, manifest{2, manifestType, config, []descriptor{layer}})
}

func (r *release) imageConfig(arch, layer string) map[string]any {
	created := r.created.Format(time.RFC3339)
	return map[string]any{
		"created": created, "os": "linux", "architecture": arch,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer}},
		"config": map[string]any{"User": "65532:65532", "Entrypoint": []string{"/taintlet"}, "Labels": map[string]string{
			"org.opencontainers.image.title":       "taintlet",
			"org.opencontainers.image.description": "Watches the health of the host it runs on and keeps the right taints on its own Kubernetes Node",
			"org.opencontainers.image.source":      repository,
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.revision":    r.revision,
			"org.opencontainers.image.created":     created,
		}},
	}
}

// withLicence returns a program and the licence as they are shipped.
func (r *release) withLicence(program, name string) ([]file, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	return []file{{name, 0o755, binary}, {"LICENSE", 0o644, licence}}, err
}
