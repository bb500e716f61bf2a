package ask

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Conntrack watches how many packets the connection table dropped, because
// it is full. Fullness alone is no trouble: the kernel then drops entries that it
// can do without first.
type Conntrack struct {
	host probes.Host
	// before is the count of the round before; known says that there was one.
	before int64
	known  bool
}

// NewConntrack returns the class that reads net/stat/nf_conntrack in h.Proc.
func NewConntrack(h probes.Host) *Conntrack { return &Conntrack{host: h} }

// Forget makes the class as new: nothing was healthy, nobody was reached.
func (c *Conntrack) Forget() { c.known = false }

// Ask implements Check.
func (c *Conntrack) Ask(context.Context, *verdict.Surroundings, time.Duration) verdict.Result {
	path := filepath.Join(c.host.Proc, "net", "stat", "nf_conntrack")
	text, err := hostfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return verdict.Result{Outcome: verdict.NotKnown, Detail: "this host tracks no connections"}
	}
	if err != nil {
		return verdict.Result{Outcome: verdict.NotKnown, Detail: "reading conntrack: " + err.Error()}
	}
	now, err := parseDrops(text)
	if err != nil {
		return verdict.Result{Outcome: verdict.NotKnown, Detail: "reading conntrack from " + path + ": " + err.Error()}
	}
	return c.evaluate(now)
}

// evaluate compares a count with that of the round before. The first says nothing
// and is taken for well. The kernel's counters have 32 bits: one that wraps, or
// that goes with its processor, is no drop.
func (c *Conntrack) evaluate(now int64) verdict.Result {
	before, known := c.before, c.known
	c.before, c.known = now, true
	if known && now > before {
		return verdict.Result{Outcome: verdict.Failed, Detail: fmt.Sprintf("the connection table dropped %d packets since the round before", now-before)}
	}
	return verdict.Result{Outcome: verdict.Well, Detail: "the connection table drops nothing"}
}

// parseDrops returns how many packets found no room in the table, from the text of
// net/stat/nf_conntrack (ct_cpu_seq_show in
// net/netfilter/nf_conntrack_standalone.c). Kernels differ in their columns.
//
// Both drop and insert_failed count a packet that lost a race against another one
// of the same connection (nf_ct_resolve_clash). Hosts whose pods ask for IPv4 and
// IPv6 addresses at the same time have such races all day. Without those, drop is
// what found no room.
func parseDrops(text string) (sum int64, err error) {
	first, processors, found := strings.Cut(text, "\n")
	if !found {
		return 0, errors.New("the heading is missing")
	}
	heading := strings.Fields(first)
	drop, clash := slices.Index(heading, "drop"), slices.Index(heading, "insert_failed")
	if drop < 0 || clash < 0 {
		return 0, fmt.Errorf("heading %s lacks drop or insert_failed", hostfile.Excerpt(first))
	}
	if err := hostfile.CheckWhole(text); err != nil {
		return 0, err
	}
	if processors == "" {
		return 0, errors.New("there is no processor")
	}
	for line := range strings.Lines(processors) {
		columns := strings.Fields(line)
		if len(columns) != len(heading) {
			return 0, fmt.Errorf("a line of %d columns instead of %d", len(columns), len(heading))
		}
		drops, err := strconv.ParseUint(columns[drop], 16, 32)
		if err != nil {
			return 0, fmt.Errorf("column drop: %s is not a hexadecimal number of 32 bits", hostfile.Excerpt(columns[drop]))
		}
		clashes, err := strconv.ParseUint(columns[clash], 16, 32)
		if err != nil {
			return 0, fmt.Errorf("column insert_failed: %s is not a hexadecimal number of 32 bits", hostfile.Excerpt(columns[clash]))
		}
		sum += int64(drops) - int64(clashes)
	}
	return sum, nil
}
