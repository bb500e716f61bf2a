package status

import (
	"context"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

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
	// Err is told of trouble during a watch.
	Err io.Writer
	// Output is one of the formats, with its template.
	Output string
	// Nodes are shown in full; empty: of all Nodes what is not healthy.
	Nodes []string
	// Selector chooses Nodes by their labels; nil: all.
	Selector labels.Selector
	// Namespace is that of the agents, whose pods and DaemonSet are read; empty: only
	// Nodes are read.
	Namespace string
	// Version is that of this program, with which that of the agents is compared.
	Version string
	// Watch draws anew whenever something changes, until the context ends.
	Watch bool
	// Wait waits until all is well, until the context ends.
	Wait bool
	// SilentAfter is how old the last sign of an agent may be; 0: two and a half heartbeats.
	SilentAfter time.Duration
	// NoHeaders shows rows and nothing else.
	NoHeaders bool
	// Screen is where tables are drawn in place of one another; nil: they follow one another.
	Screen *terminal.Screen
}

// Run shows how the fleet is. It reports whether all is well.
func Run(ctx context.Context, o Options) (isWell bool, err error) {
	client, err := installation.NewClient(o.Config)
	if err != nil {
		return false, err
	}
	v := &view{o, client, NewFleet(o.Nodes, o.SilentAfter), newPodNames(podLister(client))}
	v.fleet.Selector, v.fleet.Version = o.Selector, o.Version
	if err := v.read(ctx); err != nil {
		return false, err
	}
	if o.Watch || o.Wait {
		return v.follow(ctx)
	}
	report := v.report(ctx)
	return v.fleet.IsWell(report), o.print(report)
}

// view is the Fleet that Run reads and shows.
type view struct {
	Options
	client *installation.Client
	fleet  *Fleet
	pods   *podNames
}

// read reads the Nodes and what is installed.
func (v *view) read(ctx context.Context) error {
	for _, name := range v.Nodes {
		node, err := v.client.Node(ctx, name)
		if err != nil {
			return err
		}
		v.fleet.Add(node)
	}
	if len(v.Nodes) == 0 {
		if err := v.client.EachNode(ctx, v.fleet.Add); err != nil {
			return err
		}
	}
	if v.Namespace == "" {
		return nil
	}
	i, err := v.client.Read(ctx, v.Namespace)
	if err == nil {
		v.fleet.SetInstallation(i)
	}
	return err
}

// report is how the Fleet is now.
func (v *view) report(ctx context.Context) Report {
	r := v.fleet.Report(v.client.Now())
	v.pods.resolve(ctx, &r, time.Now())
	return r
}

// print writes a Report. A watch draws tables in place of one another on a screen.
func (o Options) print(r Report) error {
	if isPrinted, err := Print(o.Out, o.Output, &r); isPrinted {
		return err
	}
	f := Format{Wide: o.Output == OutputWide, NoHeaders: o.NoHeaders}
	isDrawn := o.Screen != nil && o.Watch
	if o.Screen != nil {
		columns, lines := o.Screen.Size()
		f.Columns, f.Colours = columns, o.Screen.Colours
		if isDrawn && lines > 0 {
			f.Rows = max(3, lines-2) // the first line has the time, and the last one the cursor
		}
	}
	lines := r.Lines(f)
	switch clock := r.Time.Format("2006-01-02 15:04:05 UTC"); {
	case o.Output == OutputName:
		lines = nil
		for _, n := range r.Nodes {
			lines = append(lines, "node/"+n.Name)
		}
	case isDrawn && !o.NoHeaders:
		lines = append([]string{clock}, lines...)
	case o.Watch && !o.NoHeaders:
		lines = append([]string{"", clock}, lines...)
	}
	if isDrawn && o.Output != OutputName {
		return o.Screen.Draw(lines)
	}
	_, err := io.WriteString(o.Out, strings.Join(append(lines, ""), "\n"))
	return err
}

// Formats are the formats of kubectl that Print knows, of one object. One that ends in = takes a template.
func Formats() []string { return []string{"json", "yaml", "jsonpath="} }

// Print prints an object. It reports whether the format is one of the Formats. Templates of Go
// are none: with text/template a program is 17 MB larger.
func Print(w io.Writer, format string, object runtime.Object) (isKnown bool, err error) {
	kind, template, _ := strings.Cut(format, "=")
	var printer printers.ResourcePrinter
	var before, after string
	switch kind {
	case "json":
		printer = &printers.JSONPrinter{}
	case "yaml":
		printer, before = &printers.YAMLPrinter{}, "---\n" // a watch prints several
	case "jsonpath":
		printer, err = printers.NewJSONPathPrinter(template)
		after = "\n"
	default:
		return false, nil
	}
	if err == nil {
		_, err = io.WriteString(w, before)
	}
	if err == nil {
		err = printer.PrintObj(object, w)
	}
	if err == nil {
		_, err = io.WriteString(w, after)
	}
	return true, err
}
