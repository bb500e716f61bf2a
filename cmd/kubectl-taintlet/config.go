package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/words"
)

func configVerb() *cobra.Command {
	var path string
	var lifecycleController bool
	c := &cobra.Command{
		Use: "config", Short: "check a configuration and show all of it", Args: command.NoArguments,
		Long: `Check a configuration and show all of it.

A comment marks each field that the file sets, with its default. Comments at the end explain for each rule
how its taint stays on a Node. The output is a valid configuration file. The command contacts no API
server.`,
		Example: `  # Is this file valid?
  kubectl taintlet config --config=config.yaml
  # All defaults
  kubectl taintlet config`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, text, err := config.HostSchema().Effective(path)
			if err != nil {
				return command.UsageError{Err: err}
			}
			where := "The built-in configuration"
			if path != "" {
				where = path + " is valid. The whole configuration"
			}
			out := c.OutOrStdout()
			_, err = fmt.Fprintf(out, "# %s:\n%s", where, text)
			return errors.Join(err, writeComments(out, words.Rules(cfg, lifecycleController), words.Eviction(cfg)))
		},
	}
	c.Flags().SortFlags = false
	command.AddConfig(c.Flags(), &path)
	command.AddLifecycleController(c.Flags(), &lifecycleController)
	return c
}

// writeComments writes paragraphs of lines as comments of YAML.
func writeComments(w io.Writer, paragraphs ...[]string) error {
	for _, lines := range paragraphs {
		fmt.Fprintln(w)
		for _, line := range lines {
			if _, err := fmt.Fprintf(w, "# %s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}
