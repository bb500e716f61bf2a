// Package deploy renders the manifests of deploy/ and installs them on a real
// API server: what they let the agent do, what they keep it from doing, and
// that the commands of deploy/README.md work.
package deploy

import (
	"os"
	"testing"

	"github.com/taintlet/taintlet/test/bed"
)

const (
	namespace = bed.Namespace
	account   = bed.Account
)

var user = bed.UserOf(namespace)

// shared has the chart installed, with two slots, by the first test that needs
// it.
var shared installation

func TestMain(m *testing.M) { os.Exit(shared.cluster.Run(m)) }
