package test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/taintlet/taintlet/"

// rooms lists each package of the product and which of the others it may import. Who
// adds an import adds it here, and so decides that the direction is right.
func rooms() map[string]string {
	return map[string]string{
		"probes":                 "",
		"probes/consumers":       "probes probes/hostfile probes/trend",
		"probes/disk":            "probes probes/hostfile probes/pressure probes/trend",
		"probes/hostfile":        "probes",
		"probes/memory":          "probes probes/hostfile probes/pressure probes/trend",
		"probes/network":         "probes probes/hostfile probes/network/ask probes/network/verdict",
		"probes/network/ask":     "probes probes/hostfile probes/network/verdict",
		"probes/network/verdict": "probes",
		"probes/pid":             "probes probes/hostfile probes/trend",
		"probes/pressure":        "probes probes/hostfile",
		"probes/trend":           "probes",

		"taints":           "",
		"taints/apiserver": "taints taints/pace",
		"taints/pace":      "",

		"agent":               "agent/config agent/decide agent/fleet agent/metrics agent/node agent/reported agent/sampling agent/serve agent/slots probes taints taints/pace",
		"agent/assembly":      "agent agent/config agent/decide agent/fleet agent/fleet/dnspods agent/node agent/slots probes taints taints/apiserver",
		"agent/config":        "agent/decide probes probes/network/verdict probes/trend taints",
		"agent/decide":        "agent/decide/describe probes taints",
		"agent/fleet":         "agent/decide agent/decide/describe agent/fleet/dnspods probes probes/network/verdict taints taints/pace",
		"agent/fleet/dnspods": "",
		"agent/hostprobes":    "agent/config probes probes/consumers probes/disk probes/memory probes/network probes/pid",
		"agent/metrics":       "agent/config agent/decide agent/decide/describe agent/fleet probes probes/network/verdict taints taints/apiserver",
		"agent/node":          "taints taints/apiserver taints/pace",
		"agent/reported":      "probes taints",
		"agent/sampling":      "agent/config agent/decide agent/metrics probes taints/pace",
		"agent/serve":         "agent/config agent/fleet agent/metrics probes probes/network/verdict taints/pace",
		"agent/slots":         "agent/config agent/decide taints taints/apiserver taints/pace",

		"agent/decide/describe": "probes taints", // its texts

		"cmd/cleanup":                       "agent/decide cmd/command cmd/terminal taints taints/apiserver taints/pace",
		"cmd/command":                       "agent/config cmd/terminal",
		"cmd/kubectl-taintlet":              "agent/config agent/decide cmd/cleanup cmd/command cmd/kubectl-taintlet/check cmd/kubectl-taintlet/installation cmd/kubectl-taintlet/status cmd/terminal cmd/words probes taints",
		"cmd/kubectl-taintlet/check":        "agent/config agent/decide agent/decide/describe cmd/command cmd/kubectl-taintlet/installation cmd/kubectl-taintlet/status cmd/terminal probes probes/pid taints taints/apiserver taints/pace",
		"cmd/kubectl-taintlet/installation": "agent/config agent/fleet/dnspods cmd/command cmd/terminal deploy taints taints/apiserver",
		"cmd/kubectl-taintlet/status":       "agent/config agent/decide agent/decide/describe cmd/command cmd/kubectl-taintlet/installation cmd/terminal probes probes/consumers taints taints/apiserver taints/pace",
		"cmd/taintlet":                      "agent agent/assembly agent/config agent/decide agent/fleet/dnspods agent/hostprobes agent/serve cmd/cleanup cmd/command cmd/terminal cmd/words probes probes/hostfile probes/pressure taints taints/apiserver taints/pace",
		"cmd/terminal":                      "",
		"cmd/words":                         "agent/config agent/decide probes taints",

		"deploy": "", // the manifests
	}
}

// goList returns the lines that go list prints in the module's folder.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// Each package of the product has a room, and imports no other package of the project
// than its room allows.
func TestRoomsImportWhatTheyMay(t *testing.T) {
	allowed := rooms()
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		name, imports, _ := strings.Cut(strings.ReplaceAll(line, module, "./"), " ")
		name = strings.TrimPrefix(name, "./")
		if strings.HasPrefix(name, "test") {
			continue
		}
		room, found := allowed[name]
		delete(allowed, name)
		if !found {
			t.Errorf("%s has no room; it imports %s", name, imports)
			continue
		}
		for _, path := range strings.Fields(imports) {
			if other, isOurs := strings.CutPrefix(path, "./"); isOurs && !slices.Contains(strings.Fields(room), other) {
				t.Errorf("%s imports %s, which its room does not allow", name, other)
			}
		}
	}
	for name := range allowed {
		t.Errorf("the room %s has no package", name)
	}
}

// What decides is a leaf: it reaches neither the network nor another program, also not
// through what it imports, which depguard does not see.
func TestWhatDecidesLinksNoNetwork(t *testing.T) {
	for _, pure := range []string{"agent/decide", "probes/network/verdict", "taints"} {
		for _, path := range goList(t, "-deps", "./"+pure) {
			if slices.Contains([]string{"net/http", "crypto/tls", "os/exec"}, path) || strings.HasPrefix(path, "k8s.io/client-go") {
				t.Errorf("%s links %s", pure, path)
			}
		}
	}
}
