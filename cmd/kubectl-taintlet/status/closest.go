package status

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// checkNames returns an error that names the first Node that does not exist, and the
// Node whose name is most like it.
func checkNames(ctx context.Context, client *apiserver.Client, names []string) error {
	return eachNamed(ctx, client, names, func(*taints.Node) {})
}

// eachNamed calls do with each of these Nodes.
func eachNamed(ctx context.Context, client *apiserver.Client, names []string, do func(*taints.Node)) error {
	for _, name := range names {
		node, err := client.GetNode(ctx, name)
		if apierrors.IsNotFound(err) {
			return unknownNode(ctx, client, name)
		}
		if err != nil {
			return err
		}
		do(node)
	}
	return nil
}

func unknownNode(ctx context.Context, client *apiserver.Client, name string) error {
	best, least := "", max(2, len(name)/3)
	err := client.Each(ctx, func(node *taints.Node) error {
		if d := distance(name, node.Name); d <= least && (d < least || best == "") {
			best, least = node.Name, d
		}
		return nil
	})
	if err != nil || best == "" {
		return fmt.Errorf("there is no Node %q", name)
	}
	return fmt.Errorf("there is no Node %q; did you mean %s?", name, terminal.Clean(best, maxName))
}

// distance is how many letters have to be added, removed or replaced to make the one word
// the other (Levenshtein).
func distance(a, b string) int {
	if max(len(a), len(b)) > maxName {
		return maxName
	}
	before := make([]int, len(b)+1)
	for j := range before {
		before[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := before[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, replaced)
		}
		before = row
	}
	return before[len(b)]
}
