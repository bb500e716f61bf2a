package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// sbom writes an SPDX document of the modules that a program was linked from.
func (r *release) sbom(name, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	root := spdxPackage("SPDXRef-Package", info.Main.Path, "v"+r.version)
	root["licenseDeclared"] = "Apache-2.0"
	root["checksums"] = []any{map[string]string{"algorithm": "SHA256", "checksumValue": sum256(content)}}
	packages := []map[string]any{root, spdxPackage("SPDXRef-Go", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	relations := []map[string]string{relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package"), relation("SPDXRef-Package", "DEPENDS_ON", "SPDXRef-Go")}
	for i, dep := range info.Deps {
		id := fmt.Sprintf("SPDXRef-Module-%d", i)
		if dep.Replace != nil {
			dep = dep.Replace
		}
		packages = append(packages, spdxPackage(id, dep.Path, dep.Version))
		relations = append(relations, relation("SPDXRef-Package", "DEPENDS_ON", id))
	}
	return r.writeJSON(name+".spdx.json", map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
		"documentNamespace": fmt.Sprintf(repository+"/releases/download/v%s/%s-%s", r.version, name, r.revision),
		"creationInfo":      map[string]any{"created": r.created.Format(time.RFC3339), "creators": []string{"Tool: taintlet-release"}},
		"packages":          packages, "relationships": relations,
	})
}

func spdxPackage(id, path, version string) map[string]any {
	return map[string]any{"SPDXID": id, "name": path, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
		"licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
		"externalRefs": []any{map[string]string{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:golang/" + path + "@" + version}}}
}

func relation(from, kind, to string) map[string]string {
	return map[string]string{"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to}
}

// provenance writes an in-toto statement, not signed: what was built, from which commit.
// The workflow signs the statement.
func (r *release) provenance(string) error {
	var subjects []any
	subject := func(name, digest string) {
		subjects = append(subjects, map[string]any{"name": name, "digest": map[string]string{"sha256": digest}})
	}
	for _, name := range []string{"taintlet-image", "taintlet-chart"} {
		entry, err := tagged(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		subject(name, strings.TrimPrefix(entry.Digest, "sha256:"))
	}
	if err := r.eachFile(func(name string, content []byte) { subject(name, sum256(content)) }); err != nil {
		return err
	}
	return r.writeJSON("provenance.intoto.json", map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":            repository + "/blob/main/docs/release.md",
				"externalParameters":   map[string]string{"version": r.version, "image": r.name},
				"internalParameters":   map[string]string{"go": runtime.Version()},
				"resolvedDependencies": []any{map[string]any{"uri": "git+" + repository, "digest": map[string]string{"gitCommit": r.revision}}},
			},
			"runDetails": map[string]any{"builder": map[string]string{"id": repository + "/blob/main/Makefile"}},
		},
	})
}

// checksums writes SHA256SUMS, for sha256sum --check, of all files but those of the layouts,
// which their digests protect.
func (r *release) checksums(string) error {
	var b bytes.Buffer
	if err := r.eachFile(func(name string, content []byte) { fmt.Fprintf(&b, "%s  %s\n", sum256(content), name) }); err != nil {
		return err
	}
	return r.write("SHA256SUMS", b.Bytes())
}

// eachFile calls see for each file beside the layouts, by name.
func (r *release) eachFile(see func(name string, content []byte)) error {
	names, err := fs.Glob(os.DirFS(r.out), "*.*")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		see(name, content)
	}
	return nil
}

func (r *release) writeJSON(name string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return r.write(name, append(content, '\n'))
}
