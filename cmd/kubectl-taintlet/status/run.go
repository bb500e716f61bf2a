package status

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/taints/pace"
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
	Err    io.Writer
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
	Watch   bool
	Wait    bool
	// SilentAfter is how old the last sign of an agent may be; 0: two and a half heartbeats.
	SilentAfter time.Duration
	NoHeaders   bool
	// Screen is where tables are drawn in place of one another; nil: they follow one another.
	Screen *terminal.Screen
}

// Run shows the state of the fleet. isWell is true if the whole fleet is healthy.
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

// read reads what is installed, and the Nodes, which have the conditions of the configuration.
func (v *view) read(ctx context.Context) error {
	if v.Namespace != "" {
		i, err := v.client.Read(ctx, v.Namespace)
		if err != nil {
			return err
		}
		v.fleet.SetInstallation(i)
	}
	if len(v.Nodes) == 0 {
		return v.client.EachNode(ctx, v.fleet.Add)
	}
	for _, name := range v.Nodes {
		node, err := v.client.Node(ctx, name)
		if err != nil {
			return err
		}
		v.fleet.Add(node)
	}
	return nil
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

// Formats are the formats of kubectl that Print supports for one object. A format that ends in =
// takes a template.
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

const (
	// drawEvery is the least time between two drawings.
	drawEvery = time.Second
	// ageEvery is how often what has not changed is drawn again: times go on.
	ageEvery = 10 * time.Second
	// readEvery is how often a watch reads the installation, and readShare how much of
	// the time that may take: the pods of 5,000 agents take more than a second.
	readEvery = 10 * time.Second
	readShare = 20
	// watchAgain is the pause before the API server is asked again after an error.
	watchAgain = time.Second
)

// follow shows the Fleet until the context ends, or until it is healthy if the user waits for that.
// If that does not happen, it shows the last state.
func (v *view) follow(ctx context.Context) (isWell bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan func())
	go v.watchNodes(ctx, changes)
	if v.Namespace != "" {
		go v.reread(ctx, changes)
	}
	for {
		report := v.report(ctx)
		isWell = v.fleet.IsWell(report)
		if v.Watch {
			err = v.print(report)
		}
		if err != nil || v.Wait && isWell || !change(ctx, changes) {
			if v.Wait {
				err = v.print(report)
			}
			return isWell, err
		}
	}
}

// change applies changes until the shown times must be redrawn, or, after the first change, for the
// least time between two drawings. It returns false if the context has ended.
func change(ctx context.Context, changes <-chan func()) bool {
	until, isFirst := time.After(ageEvery), true
	for {
		select {
		case <-ctx.Done():
			return false
		case <-until:
			return true
		case change := <-changes:
			change()
			if isFirst {
				until, isFirst = time.After(drawEvery), false
			}
		}
	}
}

// reread reads what is installed again and again until the context ends.
func (v *view) reread(ctx context.Context, changes chan<- func()) {
	took := time.Duration(0)
	for pace.Sleep(ctx, max(readEvery, readShare*took)) {
		began := time.Now()
		if i, err := v.client.Read(ctx, v.Namespace); err == nil {
			send(ctx, changes, func() { v.fleet.SetInstallation(i) })
		}
		took = time.Since(began)
	}
}

func send(ctx context.Context, changes chan<- func(), change func()) {
	select {
	case changes <- change:
	case <-ctx.Done():
	}
}

// watchNodes keeps the Fleet up to date until the context ends, by a Reflector.
func (v *view) watchNodes(ctx context.Context, changes chan<- func()) {
	nodes, selector, told := v.client.CoreV1().Nodes(), "", ""
	if len(v.Nodes) == 1 {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, v.Nodes[0]).String()
	}
	tell := func(err error) { // once
		if err != nil && err.Error() != told && ctx.Err() == nil {
			fmt.Fprintf(v.Err, "taintlet: watch nodes: %v; trying again\n", err)
		}
		told = fmt.Sprint(err)
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector, options.ResourceVersion, options.ResourceVersionMatch = selector, "", "" // in pages
			list, err := nodes.List(ctx, options)
			tell(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			events, err := nodes.Watch(ctx, options)
			tell(err)
			return events, err
		},
	}
	reflector := cache.NewReflectorWithOptions(source, &corev1.Node{}, fleetStore{ctx, v.fleet, changes}, cache.ReflectorOptions{
		Logger: &klog.Logger{}, Backoff: &wait.Backoff{Duration: watchAgain},
	})
	reflector.RunWithContext(klog.NewContext(ctx, klog.Logger{})) // what it would log is told
}

// fleetStore passes on to a Fleet what a Reflector stores.
type fleetStore struct {
	ctx     context.Context //nolint:containedctx // cache.ReflectorStore's methods take none
	fleet   *Fleet
	changes chan<- func()
}

func (s fleetStore) Resync() error { return nil }

func (s fleetStore) Add(object any) error { return s.Update(object) }

func (s fleetStore) Update(object any) error {
	node := apiserver.NodeOf(object.(*corev1.Node)) //nolint:forcetypeassert // it has no others
	send(s.ctx, s.changes, func() { s.fleet.Add(node) })
	return nil
}

func (s fleetStore) Delete(object any) error {
	name := object.(*corev1.Node).Name //nolint:forcetypeassert // as above
	send(s.ctx, s.changes, func() { delete(s.fleet.nodes, name) })
	return nil
}

func (s fleetStore) Replace(objects []any, _ string) error {
	send(s.ctx, s.changes, func() {
		clear(s.fleet.nodes)
		for _, object := range objects {
			s.fleet.Add(apiserver.NodeOf(object.(*corev1.Node))) //nolint:forcetypeassert // as above
		}
	})
	return nil
}

// Transformer leaves out the largest part of a Node, of which the Reflector keeps all for a
// moment.
func (s fleetStore) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		object.(*corev1.Node).Status.Images = nil //nolint:forcetypeassert // as above
		return object, nil
	}
}

var _ cache.TransformingStore = fleetStore{}
