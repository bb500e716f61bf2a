package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

func platforms() [][2]string {
	return [][2]string{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}
}

// compile builds a program the same way wherever the sources are.
func (r *release) compile(out, goos, arch, program string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", out,
		"-ldflags=-s -w -X github.com/taintlet/taintlet/cmd/command.version=" + r.version}, flags...)
	_, err := r.run([]string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOOS=" + goos, "GOARCH=" + arch},
		"go", append(args, "./cmd/"+program)...)
	return err
}

func (r *release) archiveName(goos, arch string) string {
	extension := ".tar.gz"
	if goos == "windows" {
		extension = ".zip"
	}
	return fmt.Sprintf("kubectl-taintlet_%s_%s_%s%s", r.version, goos, arch, extension)
}

// plugins writes an archive of kubectl-taintlet for each platform of people.
func (r *release) plugins(work string) error {
	for _, p := range platforms() {
		goos, arch := p[0], p[1]
		name, pack := "kubectl-taintlet", tarGz
		if goos == "windows" {
			name, pack = name+".exe", zipFile
		}
		path := filepath.Join(work, goos+"-"+arch)
		if err := r.compile(path, goos, arch, "kubectl-taintlet"); err != nil {
			return err
		}
		if err := r.sbom("kubectl-taintlet-"+goos+"-"+arch, path); err != nil {
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
		if err := r.write(r.archiveName(goos, arch), packed); err != nil {
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
  homepage: https://github.com/taintlet/taintlet
  shortDescription: Shows and checks the taints that taintlet keeps
  description: |
    Shows the health of the Nodes that taintlet watches, checks an
    installation and previews evictions.
  platforms:
`, r.version)
	for _, p := range platforms() {
		name := r.archiveName(p[0], p[1])
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		bin := "kubectl-taintlet"
		if p[0] == "windows" {
			bin += ".exe"
		}
		fmt.Fprintf(&b, `  - selector:
      matchLabels: {os: %s, arch: %s}
    uri: https://github.com/taintlet/taintlet/releases/download/v%s/%s
    sha256: %s
    bin: %s
`, p[0], p[1], r.version, name, sum256(content), bin)
	}
	return r.write("krew.yaml", b.Bytes())
}
