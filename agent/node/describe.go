package node

import (
	"fmt"

	"github.com/taintlet/taintlet/taints"
)

// maxDescribed is how many taints are logged: others may have set any number.
const maxDescribed = 20

// describe lists taints as kubectl shows them.
func describe(list []taints.Taint) []string {
	described := make([]string, 0, min(len(list), maxDescribed+1))
	for i, taint := range list {
		if i == maxDescribed {
			return append(described, fmt.Sprintf("and %d more", len(list)-i))
		}
		described = append(described, taint.String())
	}
	return described
}
