package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/taintlet/taintlet/test/cluster"
)

// kubectl runs the real one as the cluster's administrator.
type kubectl struct {
	path       string
	kubeconfig string
	cache      string // else it leaves files in the home folder
}

func (k kubectl) output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.path, args...)
	cmd.Env = cluster.KubectlEnv(k.kubeconfig, k.cache)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// show shows a command and what it prints.
func (d *demo) show(ctx context.Context, args ...string) error {
	text, err := d.kubectl.output(ctx, args...)
	if err != nil {
		return err
	}
	d.out.command("kubectl " + strings.Join(args, " "))
	d.out.quote(text)
	return nil
}

// describe shows what kubectl describe prints, cut to these sections and
// without the times of conditions.
func (d *demo) describe(ctx context.Context, kind, name string, names ...string) error {
	text, err := d.kubectl.output(ctx, "describe", kind, name)
	if err != nil {
		return err
	}
	d.out.command(fmt.Sprintf("kubectl describe %s %s   # cut to what matters here", kind, name))
	d.out.quote(cluster.WithoutTimes(cluster.Sections(text, names...)))
	return nil
}
