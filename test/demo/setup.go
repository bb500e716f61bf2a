package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// showOnce builds the agent and shows what it sees here.
func (d *demo) showOnce(ctx context.Context) error {
	err := d.out.during("build the agent and kubectl-taintlet", func() (err error) {
		if d.binary, err = process.BuildAgent(ctx, d.dir, process.BuildOptions{}); err == nil {
			d.plugin, err = process.BuildPlugin(ctx, d.dir, process.BuildOptions{})
		}
		return err
	})
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, d.binary, "once").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		err = nil // some condition is not OK, which is news and no failure
	}
	if err != nil {
		return fmt.Errorf("taintlet once: %w", err)
	}
	d.out.command("taintlet once")
	d.out.quote(string(out))
	return nil
}

// startControlPlane builds it when it is not built yet, and kubectl with it
// when there is none.
func (d *demo) startControlPlane(ctx context.Context) error {
	names := []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager, cluster.Scheduler}
	path, err := exec.LookPath(cluster.KubectlProgram)
	if err != nil {
		names = append(names, cluster.KubectlProgram)
	}
	dir, err := cluster.Build(ctx, d.out, names...)
	if err != nil {
		return err
	}
	if path == "" {
		path = filepath.Join(dir, cluster.KubectlProgram)
	}
	version, err := cluster.KubernetesVersion()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("start %s, Kubernetes %s", strings.Join(names[:4], ", "), version)
	err = d.out.during(what, func() error {
		d.cluster, err = cluster.Start(ctx, cluster.Options{AuditLog: true, Progress: d.out})
		return err
	})
	if err != nil {
		return err
	}
	d.kubectl = kubectl{path: path, kubeconfig: d.file("kubeconfig"), cache: d.file("kubectl-cache")}
	return cluster.WriteKubeconfig(d.kubectl.kubeconfig, d.cluster.Admin())
}

// prepareCluster registers this host and installs what an installation of
// taintlet has beside the agent.
func (d *demo) prepareCluster(ctx context.Context) error {
	err := d.out.await(ctx, "install deploy/keep.yaml and deploy/taintlet.yaml", func(ctx context.Context) error {
		if err := d.cluster.InstallKeep(ctx); err != nil {
			return err
		}
		return d.cluster.InstallShipped(ctx)
	})
	if err != nil {
		return err
	}
	err = d.out.await(ctx, "register Node "+d.nodeName, func(ctx context.Context) error {
		d.node, err = d.cluster.RegisterNode(ctx, d.nodeName)
		return err
	})
	if err != nil {
		return err
	}
	d.out.tell("There is no kubelet: the demo keeps status and lease of the Node fresh in its place, says that memory is fine,")
	d.out.tell("and runs the agent of the DaemonSet's pod.")
	return d.show(ctx, "get", "nodes")
}
