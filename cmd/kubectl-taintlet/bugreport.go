package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/check"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
)

func bugreportVerb() *cobra.Command {
	var cluster command.Cluster
	var namespace, file string
	c := &cobra.Command{
		Use: "bugreport", Short: "write a file for a bug report", Args: command.NoArguments,
		Long: `Write a .tar.gz file for a bug report: the output of status and check, the configuration, taintlet's
Events, the DaemonSet and its pods, the admission policies, the eviction slots, and of each Node the taints,
the conditions and taintlet's annotations.

It first prints the name of each part. It reads no Secret, and leaves out the values of environment
variables. The file has names of Nodes and images: read it before you publish it.`,
		Example: `  # Write taintlet-bugreport-….tar.gz into this folder
  kubectl taintlet bugreport
  # Look at it
  tar --list --file=report.tar.gz`,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := cluster.RestConfig()
			if err != nil {
				return err
			}
			reader, err := installation.NewReader(config, namespace)
			if err != nil {
				return err
			}
			now := time.Now().UTC()
			if file == "" {
				file = "taintlet-bugreport-" + now.Format("20060102T150405Z") + ".tar.gz"
			}
			return writeReport(c.Context(), c.OutOrStdout(), file, now, partsOf(config, reader, namespace))
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVarP(&file, "output", "o", "", "new `file` to write (default: taintlet-bugreport-TIME.tar.gz)")
	command.AddNamespace(flags, &namespace)
	cluster.Add(flags)
	return c
}

// part is a file of the report.
type part struct {
	name, what string
	write      func(context.Context, io.Writer) error
}

// partsOf are the files of a report. An Object that cannot be read has its error in its place.
func partsOf(config *rest.Config, reader *installation.Reader, namespace string) []part {
	show := func(output string) func(context.Context, io.Writer) error {
		return func(ctx context.Context, w io.Writer) error {
			_, err := status.Run(ctx, status.Options{
				Config: config, Out: w, Err: w, Output: output, Namespace: namespace, SilentAfter: status.DefaultSilentAfter, Version: command.Version(),
			})
			return err
		}
	}
	parts := []part{
		{"version.txt", "the version of this program", func(_ context.Context, w io.Writer) error {
			_, err := fmt.Fprintln(w, command.Version())
			return err
		}},
		{"status.txt", "what kubectl taintlet status prints", show(status.OutputWide)},
		{"status.json", "the same as JSON", show(status.OutputJSON)},
		{"check.txt", "what kubectl taintlet check prints", func(ctx context.Context, w io.Writer) error {
			_, err := check.Run(ctx, check.Options{Config: config, Out: w, Namespace: namespace})
			return err
		}},
	}
	for _, object := range reader.Objects() {
		parts = append(parts, part{object.Name + ".json", object.What, func(ctx context.Context, w io.Writer) error {
			found, err := reader.Published(ctx, object)
			if err != nil {
				return err
			}
			return terminal.WriteJSON(w, found)
		}})
	}
	return parts
}

// writeReport says what it will write, and writes it.
func writeReport(ctx context.Context, out io.Writer, path string, now time.Time, parts []part) (err error) {
	fmt.Fprintf(out, "%s will have\n", path)
	for _, p := range parts {
		fmt.Fprintf(out, "  %-24s %s\n", p.name, p.what)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // its user named it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed := gzip.NewWriter(file)
	archive := tar.NewWriter(packed)
	for _, p := range parts {
		var text bytes.Buffer
		if err := p.write(ctx, &text); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(&text, "not read: %v\n", err)
			fmt.Fprintf(out, "%s could not be read: %s\n", p.name, terminal.Clean(err.Error(), maxMessage))
		}
		header := &tar.Header{Name: p.name, Mode: 0o600, Size: int64(text.Len()), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(text.Bytes()); err != nil {
			return err
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s is written. Look at it before you publish it.\n", path)
	return err
}
