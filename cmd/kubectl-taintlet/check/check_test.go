package check

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/taints"
)

// object is what is used of a manifest's object.
type object struct{ Kind string }

func shipped(t *testing.T, files ...string) []object {
	t.Helper()
	var all []object
	for _, file := range files {
		text, err := os.ReadFile("../../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var o object
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			if o.Kind != "" {
				all = append(all, o)
			}
		}
	}
	return all
}

func allChecks() (all []check) {
	for _, g := range groups() {
		all = append(all, g.checks...)
	}
	return all
}

// Each check says what to do, and links to a heading that there is.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, c := range allChecks() {
		file, anchor, found := strings.Cut(c.link, "#")
		text, err := os.ReadFile("../../../" + file)
		if err != nil || !found || c.remedy == "" {
			t.Errorf("%s: remedy %q, link %q: %v", c.name, c.remedy, c.link, err)
			continue
		}
		if !slices.Contains(anchors(string(text)), anchor) {
			t.Errorf("%s: %s has no heading #%s", c.name, file, anchor)
		}
	}
}

// anchors returns the anchors that GitHub gives to the headings.
func anchors(markdown string) []string {
	var all []string
	for _, heading := range regexp.MustCompile("(?m)^#+ (.+)$").FindAllStringSubmatch(markdown, -1) {
		text := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(text, " ", "-"))
	}
	return all
}

func TestOldKernels(t *testing.T) {
	for release, want := range map[string]bool{
		"4.19.0-27-amd64": true, "3.10.0-1160.el7.x86_64": true, "4.20.1": false, "5.4.0": false, "6.12.9+": false, "": false, "weird": false,
	} {
		if got := isOldKernel(release); got != want {
			t.Errorf("isOldKernel(%q) = %v", release, got)
		}
	}
}

// An agent that says that it is not in the host's PID namespace is believed, whatever the
// DaemonSet says: its Node may be a container.
func TestAgentsSayInWhichNamespaceTheyAre(t *testing.T) {
	node := &taints.Node{Name: "n1", Conditions: []taints.NodeCondition{{Type: "HostPIDPressure", Status: taints.ConditionFalse, Message: "used 1 of 9; kernel.pid_max is not believed: this is not the host's PID namespace"}}}
	s := &scene{fleet: status.NewFleet(status.Options{}), said: map[string][]string{}}
	s.add(node)
	if got := named("host-pid").answer(t.Context(), s); got.Severity != Warning || !strings.HasSuffix(got.Text, ": n1") {
		t.Errorf("%+v", got)
	}
}

// named is the check with a name.
func named(name string) check {
	all := allChecks()
	return all[slices.IndexFunc(all, func(c check) bool { return c.name == name })]
}

// What keeps a check from an answer is told after its question: of a missing permission or a fact
// that is not there nothing failed.
func TestChecksWithoutAnAnswer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	for err, want := range map[error]Line{
		untold("it is not there"): {Finding: status.Finding{Severity: Skipped, Text: "whether it works: it is not there"}},
		forbidden:                 {Finding: status.Finding{Severity: Skipped, Text: "whether it works: your account is not allowed to check this: " + forbidden.Error()}},
		errors.New("timeout"):     {Finding: status.Finding{Severity: Failed, Text: "whether it works could not be checked: timeout"}, Remedy: "try again; if this persists, check the API server"},
	} {
		c := check{whether: "whether it works", ask: func(*scene, context.Context) (Line, error) { return line(OK, "fine"), err }}
		if got := c.answer(t.Context(), &scene{}); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

// Of policies that could not be read nobody says that they are not installed.
func TestUnreadPoliciesAreNotMissing(t *testing.T) {
	s := &scene{fleet: &status.Fleet{Installation: &installation.Installation{}}, report: status.Report{Unread: []installation.Unread{{Part: installation.PartPolicies}}}}
	if got := named("keep-effect").answer(t.Context(), s); got.Severity != Skipped {
		t.Errorf("%+v", got)
	}
}

// Texts of others do not command the terminal.
func TestTextsAreCleaned(t *testing.T) {
	if got := clean("a\x1b[2J\nb\u202e" + strings.Repeat("x", 1000)); strings.ContainsAny(got, "\x1b\n\u202e") || len(got) > status.MaxText+len("…") {
		t.Errorf("%q", got)
	}
}

// The objects that are tried before an installation are those of the manifests, in the
// namespace that is meant.
func TestManifestsAreTried(t *testing.T) {
	objects, err := installation.Manifests("elsewhere")
	if want := len(shipped(t, "taintlet.yaml", "keep.yaml")); err != nil || len(objects) != want {
		t.Errorf("%d objects, %v, want %d", len(objects), err, want)
	}
	for _, o := range objects {
		if o.GetKind() == "" || o.GetNamespace() == "taintlet-system" || o.GetKind() == "DaemonSet" && o.GetNamespace() != "elsewhere" {
			t.Errorf("%s %s in %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
	}
	if pod, err := podLikeOurs("elsewhere"); err != nil || !pod.Spec.HostNetwork || pod.Spec.ServiceAccountName != "" || len(pod.Spec.Containers) == 0 {
		t.Errorf("%+v, %v", pod, err)
	}
}

// A rule whose taint has the severity as value is one rule with one taint.
func TestValuesAreNoRulesOfTheirOwn(t *testing.T) {
	t.Parallel()
	cfg, err := config.HostSchema().Decode([]byte("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n" +
		"rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/trouble, value: \"50\", effect: NoSchedule}}\n" +
		"- {condition: MemoryPressure, level: Degraded, severity: 75, taint: {key: example.com/trouble, value: \"75\", effect: NoSchedule}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if pairs := (&scene{fleet: &status.Fleet{InUse: cfg}}).ownTolerated(true); len(pairs) != 1 {
		t.Errorf("DaemonSets have to tolerate %v", pairs)
	}
}

// The rules of an override are tried where the override applies to a Node.
func TestRulesOfOverridesAreTried(t *testing.T) {
	t.Parallel()
	cfg, err := config.HostSchema().Decode([]byte("apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\noverrides:\n" +
		"- nodeSelector: {pool: db}\n  rules: [{condition: DiskPressure, level: Degraded, taint: {key: example.com/pool, effect: NoSchedule}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for pool, want := range map[string]bool{"db": true, "web": false} {
		s := &scene{fleet: &status.Fleet{InUse: cfg, Policy: cfg.Policy()}, overridden: map[*config.Config]bool{}, said: map[string][]string{}}
		s.add(&taints.Node{Name: "n1", Labels: map[string]string{"pool": pool}})
		isTried := slices.ContainsFunc(s.configs(), func(c *config.Config) bool {
			_, isWanted := wantedBy(c)[taints.Pair{Key: "example.com/pool", Effect: taints.NoSchedule}]
			return isWanted
		})
		if isTried != want {
			t.Errorf("%s: it is tried: %t", pool, isTried)
		}
	}
}
