package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// checkOneEach finds Nodes with two agents, of whatever namespace. One of them writes, and the
// other waits.
func (s *scene) checkOneEach(ctx context.Context) answer {
	list, err := s.me.Pods(ctx, metav1.NamespaceAll)
	if err != nil {
		return skip("whether each Node has one agent: you may not list the pods of all namespaces")
	}
	var several []string
	for node, pods := range installation.PodsByNode(list) {
		if len(pods) > 1 {
			names := make([]string, len(pods))
			for i, p := range pods {
				names[i] = p.Namespace + "/" + p.Name
			}
			slices.Sort(names)
			several = append(several, fmt.Sprintf("%s (%s)", node, strings.Join(names, ", ")))
		}
	}
	slices.Sort(several)
	if len(several) > 0 {
		return warn("Nodes have more than one agent: %s", terminal.Listed(several))
	}
	return ok("no Node has more than one agent")
}
