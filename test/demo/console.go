package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// indent stands before everything but the headings.
	indent = "    "
	// patience is how long anything is waited for: far above what a busy
	// machine needs, so that what is missing then is missing.
	patience = time.Minute
)

// console is where the story is told, to a person.
type console struct {
	w     io.Writer
	start time.Time
}

func (c *console) elapsed() string { return fmt.Sprintf("%.1f s", time.Since(c.start).Seconds()) }

func (c *console) say(format string, args ...any) { fmt.Fprintf(c.w, format+"\n", args...) }

// tell says something about the present step.
func (c *console) tell(format string, args ...any) { c.say(indent+format, args...) }

// quote shows lines that others wrote, as they are, below the command that wrote them.
func (c *console) quote(command, text string) {
	if command != "" {
		c.say("\n%s$ %s", indent, command)
	}
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		c.tell("%s", strings.TrimRight(line, " \n"))
	}
}

// Write quotes whole lines, such as those of a build.
func (c *console) Write(lines []byte) (int, error) {
	c.quote("", string(lines))
	return len(lines), nil
}

// await waits for what must happen, but not longer than patience, and says how long it took.
func (c *console) await(ctx context.Context, what string, wait func(context.Context) error) error {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := wait(ctx); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("waited %s in vain for this: %s", patience, what)
		}
		return err
	}
	c.tell("%s: %.2f s", what, time.Since(begin).Seconds())
	return nil
}

// output runs a program as the cluster's administrator. Exit code 3 says that not all is
// well, which is news and no failure.
func (d *demo) output(ctx context.Context, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "COLUMNS=130")
	if d.cluster != nil {
		command.Env = append(cluster.KubectlEnv(d.file("kubeconfig"), d.file("kubectl-cache")), "COLUMNS=130")
	}
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != 3 {
		return "", fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(string(exit.Stderr)))
	} else if !errors.As(err, &exit) && err != nil {
		return "", err
	}
	return string(out), nil
}

// show shows a command of kubectl and what it prints.
func (d *demo) show(ctx context.Context, args ...string) error {
	text, err := d.output(ctx, d.kubectl, args...)
	d.out.quote("kubectl "+strings.Join(args, " "), text)
	return err
}

// describe shows what kubectl describe prints, cut to these sections and
// without the times of conditions.
func (d *demo) describe(ctx context.Context, kind, name string, names ...string) error {
	text, err := d.output(ctx, d.kubectl, "describe", kind, name)
	d.out.quote(fmt.Sprintf("kubectl describe %s %s   # cut to what matters here", kind, name), cluster.WithoutTimes(cluster.Sections(text, names...)))
	return err
}

// showStatus shows what kubectl taintlet status says of the Node.
func (d *demo) showStatus(ctx context.Context) error {
	text, err := d.output(ctx, d.plugin, "status", d.nodeName)
	d.out.quote("kubectl taintlet status "+d.nodeName, text)
	return err
}
