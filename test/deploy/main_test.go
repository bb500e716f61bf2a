// Package deploy renders the manifests of deploy/ and installs them on a real
// API server: what they let the agent do, that the commands of deploy/README.md work,
// and what taintlet check says of an installation, when all is well and while one thing
// after another breaks.
package deploy

import (
	"fmt"
	"os"
	"testing"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

const (
	namespace = bed.Namespace
	account   = bed.Account
)

var user = bed.UserOf(namespace)

// On checked the tests of taintlet check have an installation of their own.
var (
	checked cluster.Shared
	shared  = bed.Installation{Shared: cluster.Shared{Options: cluster.Options{AuditLog: true}}}
)

func TestMain(m *testing.M) {
	code := shared.Shared.Run(m)
	if err := checked.Stop(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
