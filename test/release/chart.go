package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// chart writes the chart as Helm packages it, the manifests that it renders, and the layout
// taintlet-chart.
// Helm gives the files of a package the time of packaging, so they are packed again.
func (r *release) chart(work string) error {
	if _, err := r.run(nil, "go", "tool", "-modfile=test/helm/go.mod", "helm", "package", "deploy/helm/taintlet",
		"--version", r.version, "--app-version", r.version, "--destination", work); err != nil {
		return err
	}
	name := "taintlet-" + r.version + ".tgz"
	content, err := os.ReadFile(filepath.Join(work, name))
	if err != nil {
		return err
	}
	files, err := untarGz(content)
	if err != nil {
		return err
	}
	if err := r.refer(files); err != nil {
		return err
	}
	packed, err := tarGz(files, r.created)
	if err != nil {
		return err
	}
	if err := r.write(name, packed); err != nil {
		return err
	}
	// The manifests for those who do not use Helm.
	if _, err := r.run([]string{"CHART=" + filepath.Join(r.out, name)}, "deploy/generate", r.out); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]string{"apiVersion": "v2", "name": "taintlet", "type": "application",
		"version": r.version, "appVersion": r.version})
	if err != nil {
		return err
	}
	return r.chartLayout(config, packed)
}

// refer makes the packaged chart refer to the release's image, by name and digest.
func (r *release) refer(files []file) error {
	image, err := tagged(filepath.Join(r.out, "taintlet-image"))
	if err != nil {
		return err
	}
	for name, edit := range map[string][2]string{
		"taintlet/values.yaml": {"  repository: taintlet/taintlet\n", "  repository: " + r.name + "\n"},
		"taintlet/Chart.yaml":  {"annotations:\n", "annotations:\n  taintlet.dev/image-digest: " + image.Digest + "\n"},
	} {
		i := slices.IndexFunc(files, func(f file) bool { return f.name == name })
		if i < 0 || bytes.Count(files[i].content, []byte(edit[0])) != 1 {
			return fmt.Errorf("%s of the chart does not have %q once", name, edit[0])
		}
		files[i].content = bytes.Replace(files[i].content, []byte(edit[0]), []byte(edit[1]), 1)
	}
	return nil
}

func (r *release) chartLayout(config, packed []byte) error {
	l, err := newLayout(filepath.Join(r.out, "taintlet-chart"))
	if err != nil {
		return err
	}
	metadata, err := l.blob("application/vnd.cncf.helm.config.v1+json", config)
	if err != nil {
		return err
	}
	content, err := l.blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed)
	if err != nil {
		return err
	}
	entry, err := l.json(manifestType, manifest{2, manifestType, metadata, []descriptor{content}})
	if err != nil {
		return err
	}
	return l.tag(entry, "", r.version)
}
