package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// workflow is of .github/workflows/release.yml what these tests read.
type workflow struct {
	Permissions map[string]string
	Env         map[string]string
	Jobs        map[string]struct {
		Permissions map[string]string
		Steps       []struct {
			Name, Uses, Run string
			Env             map[string]string
		}
	}
}

func readWorkflow(t *testing.T, name string) (w workflow) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../.github/workflows", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// The script of the workflow pushes the image under the name, and with the digest, that the
// packaged chart asks for. Programs that write down their arguments stand in for skopeo and
// cosign.
func TestWorkflowPushesWhatTheChartPulls(t *testing.T) {
	requireRelease(t)
	cluster.SkipUnlessRequired(t) // helm
	w := readWorkflow(t, "release.yml")
	const owner = "someone"
	registry := strings.ReplaceAll(w.Env["REGISTRY"], "${{ github.repository_owner }}", owner)
	build, push := "", ""
	for _, step := range w.Jobs["build"].Steps {
		build += step.Run
	}
	for _, step := range w.Jobs["publish"].Steps {
		if strings.Contains(step.Run, "skopeo") {
			push = step.Run
		}
	}
	_, argument, found := strings.Cut(build, ` RELEASE_IMAGE="$REGISTRY/`)
	if !found {
		t.Fatalf("the workflow's make release has no RELEASE_IMAGE: %s", build)
	}
	name, _, _ := strings.Cut(argument, `"`)
	r := builtAs(t, "0.1.0", registry+"/"+name)

	tools, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	for _, tool := range []string{"skopeo", "cosign"} {
		script := "#!/bin/sh\necho " + tool + " \"$@\" >>" + log + "\n"
		if err := os.WriteFile(filepath.Join(tools, tool), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	run(t, []string{"PATH=" + tools + ":/usr/bin:/bin", "REGISTRY=" + registry, "TAG=v0.1.0", "ACTOR=a", "TOKEN=t"}, "bash", "-e", "-c", "cd "+r.out+"\n"+push)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}

	render := func(args ...string) string {
		return run(t, os.Environ(), bed.Helm(t), append([]string{"template", "taintlet", filepath.Join(r.out, "taintlet-0.1.0.tgz"), "--kube-version=1.37"}, args...)...)
	}
	if want := "image: " + r.name + ":v9\n"; strings.Count(render("--set=image.tag=v9"), want) != 2 {
		t.Errorf("with another tag the chart does not ask for %s", want)
	}
	manifest := render()
	manifest += string(files(t, r.out)["taintlet.yaml"])
	for line := range strings.Lines(manifest) {
		image, isImage := strings.CutPrefix(strings.TrimSpace(line), "image: ")
		if !isImage {
			continue
		}
		tagged, digest, _ := strings.Cut(image, "@")
		untagged, _, _ := strings.Cut(tagged, ":0.1.0")
		wanted := []string{
			"skopeo copy --all --preserve-digests oci:taintlet-image:0.1.0 docker://" + tagged,
			"cosign sign --yes " + untagged + "@" + digest,
		}
		for _, command := range wanted {
			if !slices.Contains(strings.Split(string(text), "\n"), command) {
				t.Errorf("the chart asks for %s, and the workflow does not run\n%s\nbut\n%s", image, command, text)
			}
		}
		t.Log(image)
	}
	if count := strings.Count(manifest, "\n        image: ") + strings.Count(manifest, "\n      image: "); count != 3 {
		t.Errorf("%d images, want those of the agents and of the cleanup in the chart, and of the agents in taintlet.yaml", count)
	}
	krew, err := os.ReadFile(filepath.Join(r.out, "krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if uri := repository + "/releases/download/v0.1.0/" + r.archiveName(r.people[0]); !strings.Contains(string(krew), "uri: "+uri+"\n") {
		t.Errorf("krew.yaml lacks %s:\n%s", uri, krew)
	}
}

var isCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Each workflow begins without permissions, its jobs have named ones, and each action is
// pinned to a commit. A job that may write runs no make of the repository.
func TestWorkflowsHaveFewPermissions(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		w := readWorkflow(t, filepath.Base(file))
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s: permissions %v, want {}", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			if len(job.Permissions) == 0 {
				t.Errorf("%s: job %s names no permissions", file, name)
			}
			for _, step := range job.Steps {
				action, commit, _ := strings.Cut(step.Uses, "@")
				if step.Uses != "" && !isCommit.MatchString(commit) {
					t.Errorf("%s: %s is not pinned to a commit: %q", file, action, commit)
				}
				for permission, access := range job.Permissions {
					if access == "write" && strings.Contains(step.Run, "make ") {
						t.Errorf("%s: job %s runs %q and may write %s", file, name, step.Run, permission)
					}
				}
			}
		}
	}
}
