package assembly

import (
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints/apiserver"
)

// Requests a second to the API server, and at once. The Node needs few requests.
// Reading all slots needs up to a hundred.
const (
	ClientRate  = 10
	ClientBurst = 120
)

// connect returns a client of the own Node.
func connect(o *Options) (*apiserver.Client, error) {
	restConfig := rest.CopyConfig(o.RestConfig)
	restConfig.QPS, restConfig.Burst = ClientRate, ClientBurst
	client, err := apiserver.NewClient(restConfig, o.Node)
	if err != nil {
		return nil, err
	}
	client = client.Unretried()
	if o.DryRun == DryRunServer {
		client = client.DryRun()
	}
	return client, nil
}
