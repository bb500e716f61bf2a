package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// status runs kubectl taintlet status over all Nodes.
func (r *run) status(ctx context.Context) error {
	kubeconfig := filepath.Join(r.folder, "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, r.cluster.Admin()); err != nil {
		return err
	}
	tainted, _, _ := r.view.now()
	for _, output := range []string{"table", "json"} {
		var out, complaint bytes.Buffer
		command := exec.CommandContext(ctx, r.program, "status", "--output="+output, "--namespace=", "--kubeconfig="+kubeconfig) //nolint:gosec // our own binary
		command.Stdout, command.Stderr = &out, &complaint
		begin := time.Now()
		most, err := process.RunMeasured(ctx, command)
		s := status{Args: fmt.Sprintf("--output=%s, %d tainted", output, tainted), Took: time.Since(begin), Lines: strings.Count(out.String(), "\n"), RSS: float64(most) / 1024}
		const notWell = 3
		if err != nil && command.ProcessState.ExitCode() != notWell {
			return fmt.Errorf("kubectl taintlet status: %w: %s", err, complaint.String())
		}
		r.f.Status = append(r.f.Status, s)
	}
	return nil
}
