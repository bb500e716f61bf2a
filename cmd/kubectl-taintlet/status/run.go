package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/output"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// The formats of Options.Output beside those of package output.
const (
	OutputTable = "table"
	OutputWide  = "wide"
	OutputName  = "name"
)

const (
	// requestRate is how many requests a second are made at most: pages, or Nodes that
	// were asked for by name.
	requestRate = 50
	// drawEvery is the least time between two drawings.
	drawEvery = time.Second
	// ageEvery is how often what has not changed is drawn again: times go on.
	ageEvery = 10 * time.Second
	// readEvery is how often a watch reads the installation, and readShare how much of
	// the time that may take: the pods of 5,000 agents take more than a second.
	readEvery = 10 * time.Second
	readShare = 20
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
	clock := &serverClock{}
	config := rest.CopyConfig(o.Config)
	config.QPS, config.Burst = requestRate, requestRate
	config.Wrap(clock.wrap)
	client, err := apiserver.NewClient(config, "")
	if err != nil {
		return false, err
	}
	fleet := NewFleet(o.Nodes, o.SilentAfter)
	fleet.Selector, fleet.Version = o.Selector, o.Version
	reader := &installation.Reader{Namespace: o.Namespace}
	if reader.Client, err = installation.NewClient(config); err != nil {
		return false, err
	}
	pods := newPodNames(podLister(reader.Client))
	if o.Watch || o.Wait {
		if err := eachNamed(ctx, client, o.Nodes, func(*taints.Node) {}); err != nil {
			return false, err
		}
		return o.follow(ctx, client, fleet, clock, reader, pods)
	}
	if err := o.read(ctx, client, fleet); err != nil {
		return false, err
	}
	if o.Namespace != "" {
		i, err := reader.Read(ctx)
		if err != nil {
			return false, err
		}
		fleet.SetInstallation(i)
	}
	report := fleet.Report(clock.now())
	pods.resolve(ctx, &report, time.Now())
	return fleet.IsWell(report), o.print(report)
}

// read reads the Nodes once.
func (o Options) read(ctx context.Context, client *apiserver.Client, fleet *Fleet) error {
	if len(o.Nodes) == 0 {
		return client.Each(ctx, func(node *taints.Node) error {
			fleet.Add(node)
			return nil
		})
	}
	return eachNamed(ctx, client, o.Nodes, fleet.Add)
}

// eachNamed calls do with each of these Nodes.
func eachNamed(ctx context.Context, client *apiserver.Client, names []string, do func(*taints.Node)) error {
	for _, name := range names {
		node, err := client.GetNode(ctx, name)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no Node %q", name)
		}
		if err != nil {
			return err
		}
		do(node)
	}
	return nil
}

// print writes a Report.
func (o Options) print(r Report) error {
	if isPrinted, err := output.Print(o.Out, o.Output, &r); isPrinted {
		return err
	}
	lines := r.Lines(o.format(0))
	if o.Watch && !o.NoHeaders {
		lines = append([]string{"", r.clock()}, lines...)
	}
	if o.Output == OutputName {
		lines = r.names()
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(o.Out, strings.Join(lines, "\n")+"\n")
	return err
}

// clock is when the Report was made: a watch shows one after another.
func (r Report) clock() string { return r.Time.Format("2006-01-02 15:04:05 UTC") }

// names are the Nodes as kubectl names objects.
func (r Report) names() []string {
	var names []string
	for _, n := range r.Nodes {
		names = append(names, "node/"+n.Name)
	}
	return names
}

// format is how tables are laid out; of at most so many lines, 0: of any number.
func (o Options) format(rows int) Format {
	f := Format{Wide: o.Output == OutputWide, NoHeaders: o.NoHeaders, Rows: rows}
	if o.Screen != nil {
		f.Columns, _ = o.Screen.Size()
		f.Colours = o.Screen.Colours
	}
	return f
}

// draw shows a Report in place of the last one.
func (o Options) draw(r Report) error {
	isTable := o.Output == OutputTable || o.Output == OutputWide
	if o.Screen == nil || !isTable {
		return o.print(r)
	}
	rows := 0
	if _, lines := o.Screen.Size(); lines > 0 {
		rows = max(3, lines-2) // the first line has the time, and the last one the cursor
	}
	lines := r.Lines(o.format(rows))
	if !o.NoHeaders {
		lines = append([]string{r.clock()}, lines...)
	}
	return o.Screen.Draw(lines)
}

// follow shows the fleet until the context ends, or all is well where that is waited
// for.
func (o Options) follow(ctx context.Context, client *apiserver.Client, fleet *Fleet, clock *serverClock, reader *installation.Reader, pods *podNames) (isWell bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWatcher(fleet, o.Err)
	ended := make(chan error, 1)
	if len(o.Nodes) == 1 {
		client = client.Node(o.Nodes[0])
	}
	go func() { ended <- client.Follow(ctx, w) }()
	if o.Namespace != "" {
		go w.reread(ctx, reader)
	} else {
		w.installed = true
	}
	age := time.NewTicker(ageEvery)
	defer age.Stop()
	var report Report
	for {
		select {
		case err := <-ended:
			if !isOfContext(err) {
				return false, err
			}
			return isWell, o.last(report)
		case <-w.changed:
		case <-age.C:
		}
		var isSynced bool
		if report, isWell, isSynced = w.report(clock.now()); !isSynced {
			continue
		}
		pods.resolve(ctx, &report, time.Now())
		if isWell && o.Wait {
			return true, o.print(report)
		}
		if !o.Wait {
			if err := o.draw(report); err != nil {
				return false, err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(drawEvery):
		}
	}
}

func isOfContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// last prints what was waited for in vain.
func (o Options) last(r Report) error {
	if !o.Wait {
		return nil
	}
	if r.Kind == "" {
		return errors.New("the Nodes were not read in time")
	}
	return o.print(r)
}

// serverClock tells the time of the API server, which is that of the Nodes' last
// signs. The clock of the machine from which a person looks may be wrong.
type serverClock struct{ ahead atomic.Int64 }

// maxUnheeded is a difference that whole seconds and a slow answer explain.
const maxUnheeded = 5 * time.Second

func (c *serverClock) now() time.Time {
	if ahead := time.Duration(c.ahead.Load()); ahead.Abs() > maxUnheeded {
		return time.Now().Add(ahead)
	}
	return time.Now()
}

func (c *serverClock) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
				c.ahead.Store(int64(time.Until(date)))
			}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
