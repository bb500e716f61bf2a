package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitNotWell = 3
)

// errNotWell ends a verb that has already said what is not well.
var errNotWell = errors.New("not all is well")

// usageError is a mistake in the arguments or in the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// verb is one thing that the program can be asked for.
type verb struct {
	// name is the first argument; empty: the agent, which runs without a verb.
	name string
	// arguments is what may follow the name, for the usage line; empty: only
	// flags.
	arguments string
	// words are the arguments that a shell completes.
	words []string
	// summary is one line without a full stop; about is the rest, in paragraphs.
	summary, about string
	examples       []example
	// notWell is what exit code 3 means; empty: the verb never ends with it.
	notWell string
	// bind declares the verb's own flags and returns what runs it when they are
	// parsed. A usageError that this returns ends the program with exit code 2,
	// errNotWell with 3, and any other error with 1.
	bind func(*pflag.FlagSet) func(context.Context, call) error
}

// example is a command with what it does. The command begins with "taintlet".
type example struct{ does, command string }

// call is how a verb is called.
type call struct {
	// program is what people type to call it: taintlet or kubectl taintlet.
	program string
	// args are the arguments that are no flags.
	args           []string
	stdout, stderr io.Writer
}

// verbs is the table of all verbs. Help, completion and docs/command-line.md are
// made from it. A new verb is a file with a function that returns its entry, and a
// line here.
func verbs() []verb {
	table := []verb{
		agentVerb(),
		onceVerb(),
		watchVerb(),
		statusVerb(),
		checkVerb(),
		configVerb(),
		cleanupVerb(),
		completionVerb(),
		versionVerb(),
	}
	return append(table, helpVerb(names(table)))
}

// names returns the names of the verbs that have one.
func names(table []verb) []string {
	var list []string
	for _, v := range table {
		if v.name != "" {
			list = append(list, v.name)
		}
	}
	return list
}

// find returns the verb of that name.
func find(name string) (verb, error) {
	table := verbs()
	if i := slices.IndexFunc(table, func(v verb) bool { return v.name == name }); i >= 0 {
		return table[i], nil
	}
	return verb{}, usageError{fmt.Errorf("unknown verb %q; the verbs are %s", name, strings.Join(names(table), ", "))}
}

// flags returns the verb's flags, in the order in which they were declared, and
// what runs it.
func (v verb) flags() (*pflag.FlagSet, func(context.Context, call) error) {
	flags := pflag.NewFlagSet(v.name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard) // errors are printed once, by run
	flags.Usage = func() {}
	return flags, v.bind(flags)
}
