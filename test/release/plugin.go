package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// compile builds a program the same way wherever the sources are.
func (r *release) compile(out string, on platform, program string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", out,
		"-ldflags=-s -w -X github.com/taintlet/taintlet/cmd/command.version=" + r.version}, flags...)
	_, err := r.run([]string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOOS=" + on.OS, "GOARCH=" + on.Architecture},
		"go", append(args, "./cmd/"+program)...)
	return err
}

func (r *release) archiveName(of platform) string {
	extension := ".tar.gz"
	if of.OS == "windows" {
		extension = ".zip"
	}
	return fmt.Sprintf("kubectl-taintlet_%s_%s_%s%s", r.version, of.OS, of.Architecture, extension)
}

// plugins writes an archive of kubectl-taintlet for each platform of people.
func (r *release) plugins(work string) error {
	for _, p := range r.people {
		name, pack := "kubectl-taintlet", tarGz
		if p.OS == "windows" {
			name, pack = name+".exe", zipFile
		}
		path := filepath.Join(work, p.OS+"-"+p.Architecture)
		if err := r.compile(path, p, "kubectl-taintlet"); err != nil {
			return err
		}
		if err := r.sbom("kubectl-taintlet-"+p.OS+"-"+p.Architecture, path); err != nil {
			return err
		}
		files, err := r.withLicence(path, name)
		if err != nil {
			return err
		}
		packed, err := pack(files, r.created)
		if err != nil {
			return err
		}
		if err := r.write(r.archiveName(p), packed); err != nil {
			return err
		}
	}
	return nil
}

// krew writes the manifest for kubectl's plugin manager.
func (r *release) krew(string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: taintlet
spec:
  version: v%s
  homepage: %s
  shortDescription: Shows and checks the taints that taintlet keeps
  description: |
    Shows the health of the Nodes that taintlet watches, checks an
    installation and previews evictions.
  platforms:
`, r.version, repository)
	for _, p := range r.people {
		name := r.archiveName(p)
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		bin := "kubectl-taintlet"
		if p.OS == "windows" {
			bin += ".exe"
		}
		fmt.Fprintf(&b, `  - selector:
      matchLabels: {os: %s, arch: %s}
    uri: %s/releases/download/v%s/%s
    sha256: %s
    bin: %s
`, p.OS, p.Architecture, repository, r.version, name, sum256(content), bin)
	}
	return r.write("krew.yaml", b.Bytes())
}
