package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

// status runs taintlet status over all Nodes.
func (r *run) status(ctx context.Context) error {
	kubeconfig := filepath.Join(r.folder, "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, r.cluster.Admin()); err != nil {
		return err
	}
	tainted, _, _ := r.view.now()
	for _, output := range []string{"table", "json"} {
		var out, complaint bytes.Buffer
		command := exec.CommandContext(ctx, r.program, "status", "--output="+output, "--kubeconfig="+kubeconfig) //nolint:gosec // our own binary
		command.Stdout, command.Stderr = &out, &complaint
		begin := time.Now()
		err := command.Run()
		s := status{Args: fmt.Sprintf("--output=%s, %d tainted", output, tainted), Took: time.Since(begin), Lines: strings.Count(out.String(), "\n")}
		const notWell = 3
		if err != nil && command.ProcessState.ExitCode() != notWell {
			return fmt.Errorf("taintlet status: %w: %s", err, complaint.String())
		}
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			s.RSS = float64(usage.Maxrss) / 1024
		}
		r.f.Status = append(r.f.Status, s)
	}
	return nil
}
