package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/process"
)

// RestartAPIServer kills the API server, as a crash would, starts it again with the
// same arguments and returns when it is ready.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.Admin())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for i, p := range c.components {
		if p.Name() != APIServer {
			continue
		}
		if err := p.Kill(); err != nil {
			return err
		}
		again := process.Command(filepath.Join(c.bin, APIServer), p.Args()[1:]...)
		if c.components[i], err = process.Start(APIServer, again, c.file(APIServer+".log")); err != nil {
			return err
		}
		return waitHealthy(ctx, c.components[i], client, c.url+"/readyz")
	}
	return fmt.Errorf("restart %s: it was not started", APIServer)
}
