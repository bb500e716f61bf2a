package installation

import (
	"slices"
	"strings"
	"testing"
)

// The permissions that are checked are those that the manifest grants to the agents, and not
// those for people.
func TestNeededIsWhatTheManifestGrants(t *testing.T) {
	all, err := needed("elsewhere", "dns")
	var words []string
	for _, p := range all {
		words = append(words, p.String())
	}
	slices.Sort(words)
	want := `create events in default
get endpointslices in dns
get endpointslices in elsewhere
get endpointslices kubernetes in default
get leases in kube-node-lease
get mutatingadmissionpolicies taintlet-keep
get mutatingadmissionpolicybindings taintlet-keep
get nodes
list endpointslices in dns
list endpointslices in elsewhere
list nodes
patch nodes
patch nodes/status
watch nodes`
	if got := strings.Join(words, "\n"); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}
