package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/spf13/cobra"
	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes/consumers"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/pace"
)

// Verb returns the verb.
func Verb() *cobra.Command {
	var o Options
	var cluster command.Cluster
	var timeout time.Duration
	c := &cobra.Command{
		Use: "status [NODE…]", Short: "Show which Nodes are not healthy and which agents do not run",
		Long: `Show which Nodes are not healthy and which agents do not run.

It prints a line about the fleet, a line about the agents' DaemonSet, the findings about the installation, each
with a command to run next, and a row for each condition that is not healthy, the worst Nodes first. For named
Nodes it also prints the healthy conditions, and the taints and conditions of other programs. It reads from the
API server only, and contacts no agent.

An agent is silent when it has not written its Node for two and a half heartbeats. If the agents are not pods,
--namespace= reads the Nodes only. Use --silent-after if the heartbeat is not 5 minutes.

Exit code 3: an agent is silent or down, a condition is not OK, a finding is a failure, or there is no agent.`,
		Example: `  # Is the fleet healthy?
  kubectl taintlet status
  # Why does this Node have a taint?
  kubectl taintlet status worker-3
  # Follow an incident
  kubectl taintlet status --watch
  # Wait in a script until everything is healthy
  kubectl taintlet status --wait --timeout=30m
  # Cordon the Nodes of a zone that are not healthy
  kubectl taintlet status -l topology.kubernetes.io/zone=a -o name | xargs kubectl cordon`,
		Args: command.NodeNames,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := o.check(args); err != nil {
				return err
			}
			if o.Config, err = cluster.RestConfig(); err != nil {
				return err
			}
			ctx, cancel := command.Within(c.Context(), timeout)
			defer cancel()
			o.Nodes, o.Namespace = args, cluster.Namespace
			o.Out, o.Err, o.Version = c.OutOrStdout(), c.ErrOrStderr(), command.Version()
			isWell, err := Run(ctx, o)
			if err == nil && !isWell && !o.Watch {
				return command.ErrNotWell
			}
			return err
		},
	}
	c.ValidArgsFunction = installation.CompleteNodes(&cluster)
	flags := c.Flags()
	addStatusFlags(c, &o)
	flags.StringVarP(&o.Selector, "selector", "l", "", "show only Nodes with these `labels`, as in kubectl")
	flags.DurationVar(&timeout, "timeout", 0, "how long to wait with --wait (default: no limit)")
	cluster.Add(flags)
	return c
}

func addStatusFlags(c *cobra.Command, o *Options) {
	flags := c.Flags()
	command.AddChoice(c, &o.Output, "output", "o", "output `format`: table, wide or name, or json, yaml or jsonpath=TEMPLATE as in kubectl", append([]string{OutputTable, OutputWide, OutputName}, Formats()...)...)
	flags.BoolVar(&o.NoHeaders, "no-headers", false, "print only the rows, without headers and the lines above them")
	flags.BoolVarP(&o.Watch, "watch", "w", false, "refresh every 3 s (less often on a large cluster) until interrupted")
	flags.BoolVar(&o.Wait, "wait", false, "wait until everything is healthy")
	flags.DurationVar(&o.SilentAfter, "silent-after", 0, "how long after its last write an agent is silent (default: two and a half heartbeats)")
}

// check finds flags that exclude each other.
func (o *Options) check(nodes []string) error {
	switch {
	case o.Watch && o.Wait:
		return command.Usagef("--watch and --wait exclude each other")
	case o.Selector != "" && len(nodes) > 0:
		return command.Usagef("--selector and names of Nodes exclude each other")
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return command.Usagef("--selector: %w", err)
	}
	return nil
}

// The formats of Options.Output beside the Formats.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputName  = "name"
)

// Options say what Run shows, and where.
type Options struct {
	Config *rest.Config
	Out    io.Writer
	Err    io.Writer
	// Output is one of the formats, with its template.
	Output string
	// Nodes are shown in full; empty: all Nodes, with only their unhealthy conditions.
	Nodes []string
	// Selector chooses Nodes by their labels; empty: all.
	Selector string
	// Namespace is that of the agents, whose pods and DaemonSet are read; empty: only
	// Nodes are read.
	Namespace string
	// Version is that of this program, with which that of the agents is compared.
	Version string
	Watch   bool
	Wait    bool
	// SilentAfter is how old the last sign of an agent may be; 0: two and a half heartbeats.
	SilentAfter time.Duration
	NoHeaders   bool
}

// readEvery is the least time between two reads of a watch. After a read, the watch waits at least
// readShare times as long as the read took: a read of 5,000 Nodes and pods takes seconds.
const (
	readEvery = 3 * time.Second
	readShare = 5
)

// Run shows the state of the fleet. isWell is true if the whole fleet is healthy. If the user waits
// for that and it does not happen before the context ends, it shows the last state.
func Run(ctx context.Context, o Options) (isWell bool, err error) {
	client, err := installation.NewClient(o.Config)
	if err != nil {
		return false, err
	}
	var report Report
	for told := ""; ; {
		began := time.Now()
		next, isNextWell, failed := o.read(ctx, client)
		switch {
		case failed == nil:
			report, isWell, told = next, isNextWell, ""
			if o.Watch {
				err = o.print(report)
			}
		case report.Kind == "":
			return false, failed
		case failed.Error() != told && ctx.Err() == nil:
			told = failed.Error()
			fmt.Fprintf(o.Err, "taintlet: %s; trying again\n", told)
		}
		if err != nil || !o.Watch && (isWell || !o.Wait) || !pace.Sleep(ctx, max(readEvery, readShare*time.Since(began))) {
			break
		}
	}
	if err == nil && !o.Watch {
		err = o.print(report)
	}
	return isWell, err
}

// read returns the state of the fleet as it is now.
func (o Options) read(ctx context.Context, client *installation.Client) (r Report, isWell bool, err error) {
	fleet := NewFleet(o)
	if err := fleet.Read(ctx, client, func(*taints.Node) {}); err != nil {
		return r, false, err
	}
	r = fleet.Report(client.Now())
	r.namePods(func(node string) ([]*metav1.PartialObjectMetadata, error) {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		list := client.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List // without their specs
		return installation.List[*metav1.PartialObjectMetadata](ctx, list, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	})
	return r, fleet.IsWell(r), nil
}

// screen is an Options.Out that may be a terminal, on which tables are as wide as it. A watch
// writes them there in place of one another.
type screen interface {
	Size() (columns, lines int)
	Clear() error
}

// print writes a Report. That of a watch begins with its time.
func (o Options) print(r Report) (err error) {
	if isPrinted, err := Print(o.Out, o.Output, &r); isPrinted {
		return err
	}
	columns, most := 0, 0
	to, isScreen := o.Out.(screen)
	if isScreen {
		columns, most = to.Size()
	}
	lines := r.Lines(Format{o.Output == OutputWide, o.NoHeaders, columns})
	if o.Output == OutputName {
		lines = nil
		for _, n := range r.Nodes {
			lines = append(lines, "node/"+n.Name)
		}
	} else if o.Watch && !o.NoHeaders {
		lines = append([]string{r.Time.Format("2006-01-02 15:04:05 UTC")}, lines...)
	}
	switch {
	case o.Watch && most > 0:
		lines, err = bounded(lines, most-1), to.Clear() // the last line has the cursor
	case o.Watch && !o.NoHeaders:
		lines = append([]string{""}, lines...)
	}
	if err == nil {
		_, err = io.WriteString(o.Out, strings.Join(append(lines, ""), "\n"))
	}
	return err
}

func bounded(lines []string, most int) []string {
	most = max(most, 4) // the time and a line of the Report
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most-1:most-1], fmt.Sprintf("… and %s more", terminal.Count(len(lines)-most+1, "line")))
}

// Formats are the formats of kubectl that Print supports for one object. A format that ends in =
// takes a template.
func Formats() []string { return []string{"json", "yaml", "jsonpath="} }

// Print prints an object. It reports whether the format is one of the Formats. Templates of Go
// are none: with text/template a program is 17 MB larger. custom-columns is none: a program
// that calls nothing but its printer (k8s.io/kubectl/pkg/cmd/get) has 50 MB, and this one 29 MB.
func Print(w io.Writer, format string, object runtime.Object) (isKnown bool, err error) {
	kind, template, _ := strings.Cut(format, "=")
	printer, before, after := printers.ResourcePrinter(&printers.JSONPrinter{}), "", ""
	switch kind {
	case "json":
	case "yaml":
		printer, before = &printers.YAMLPrinter{}, "---\n" // a watch prints several
	case "jsonpath":
		printer, err = printers.NewJSONPathPrinter(template)
		after = "\n"
	default:
		return false, nil
	}
	var text strings.Builder
	if err == nil {
		err = printer.PrintObj(object, &text)
	}
	if err == nil {
		_, err = fmt.Fprint(w, before, text.String(), after)
	}
	return true, err
}

const (
	// mostLookups is for how many Nodes of one Report pods are listed at most. The others keep
	// the UIDs: of hundreds of Nodes nobody reads every message.
	mostLookups = 50
	listTimeout = 5 * time.Second
	// configAnnotation is the UID that the kubelet gave a static pod. The pod that the API server
	// has in its place has another one (ConfigHashAnnotationKey in pkg/kubelet/types/pod_update.go).
	configAnnotation = "kubernetes.io/config.hash"
)

// namePods gives the pods in messages their names, with one request for each Node that has such a
// message. list returns the pods of a Node. A static pod is known by the hash that stands in the
// name of its control group. After the first failure nothing more is asked.
func (r *Report) namePods(list func(node string) ([]*metav1.PartialObjectMetadata, error)) {
	lookups := 0
	for _, n := range r.Nodes {
		namesPod := func(c Condition) bool { return len(consumers.PodsIn(c.Message)) > 0 }
		if lookups == mostLookups || !slices.ContainsFunc(n.Conditions, namesPod) {
			continue
		}
		lookups++
		pods, err := list(n.Name)
		if err != nil {
			r.Unread = append(r.Unread, installation.NewUnread("names of pods", err))
			return
		}
		names := map[string]string{}
		for _, p := range pods {
			names[cmp.Or(p.Annotations[configAnnotation], string(p.UID))] = terminal.Clean(p.Namespace+"/"+p.Name, 2*maxName)
		}
		for i := range n.Conditions {
			c := &n.Conditions[i]
			for _, uid := range consumers.PodsIn(c.Message) {
				c.Message = strings.ReplaceAll(c.Message, "pod "+uid, "pod "+cmp.Or(names[uid], uid))
			}
		}
	}
}
