package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Conntrack watches how many packets the connection table dropped, because it is full. A full table
// alone is not a fault: the kernel first drops entries that it can do without.
type Conntrack struct {
	host   probes.Host
	before *counts // of the round before; nil: there was none
}

// counts are sums of columns of net/stat/nf_conntrack, over all processors.
type counts struct{ drop, insertFailed, tooLong int64 }

// NewConntrack returns the class that reads net/stat/nf_conntrack and
// sys/net/netfilter/nf_conntrack_{count,max} in h.Proc.
func NewConntrack(h probes.Host) *Conntrack { return &Conntrack{host: h} }

// Ask implements Check.
func (c *Conntrack) Ask(context.Context, *verdict.Surroundings, time.Duration) verdict.Result {
	path := filepath.Join(c.host.Proc, "net", "stat", "nf_conntrack")
	now, isThere, err := hostfile.ParseOptional(path, parseDrops)
	switch {
	case err != nil:
		return verdict.Result{Detail: "reading conntrack: " + err.Error()}
	case !isThere:
		return c.withoutCounts()
	}
	return c.evaluate(now)
}

// withoutCounts says what a kernel tells that does not show its counts
// (CONFIG_NF_CONNTRACK_PROCFS). A full table is then no proof that it drops packets.
func (c *Conntrack) withoutCounts() verdict.Result {
	entries, most, isThere, err := c.entries()
	switch {
	case err != nil:
		return verdict.Result{Detail: "reading conntrack: " + err.Error()}
	case !isThere:
		return verdict.Result{Detail: "this kernel shows no connection table"}
	case isFull(entries, most):
		return verdict.Result{Outcome: verdict.Failed, Detail: fmt.Sprintf("the connection table is full (%d of %d entries); this kernel does not show what it drops", entries, most)}
	}
	return verdict.Result{Outcome: verdict.Well, Detail: fmt.Sprintf("the connection table has %d of at most %d entries", entries, most)}
}

// isFull reports whether a table has no room. It has no limit if most is 0.
func isFull(entries, most int64) bool { return most > 0 && entries >= most }

// entries returns how many entries the table has, and may have (nf_conntrack-sysctl.rst).
func (c *Conntrack) entries() (entries, most int64, isThere bool, err error) {
	for name, into := range map[string]*int64{"nf_conntrack_count": &entries, "nf_conntrack_max": &most} {
		*into, isThere, err = hostfile.ParseOptional(filepath.Join(c.host.Proc, "sys", "net", "netfilter", name), func(text string) (int64, error) {
			return strconv.ParseInt(strings.TrimSuffix(text, "\n"), 10, 64)
		})
		if !isThere {
			break
		}
	}
	return entries, most, isThere, err
}

// evaluate compares the counts with those of the previous round. The kernel's counters have 32
// bits. A counter that wraps, or that disappears with its processor, does not count as a drop.
//
// Both drop and insert_failed count a packet that lost a race against another packet of its
// connection (nf_ct_resolve_clash). Such races are normal: a pod that queries IPv4 and IPv6
// addresses together causes them. insert_failed alone counts connections that died before they were
// confirmed, resolved races (before Linux 5.10), and packets whose chain was too long (5.15). So
// drops beyond insert_failed found no room in the table. Other drops found no room only if the
// table is full.
func (c *Conntrack) evaluate(now counts) verdict.Result {
	before := cmp.Or(c.before, &now)
	c.before = &now
	tooLong := max(0, now.tooLong-before.tooLong)
	dropped := max(0, now.drop-before.drop)
	noRoom := max(0, dropped-max(0, now.insertFailed-before.insertFailed-tooLong))
	if noRoom == 0 && dropped > 0 {
		if entries, most, isThere, _ := c.entries(); isThere && isFull(entries, most) {
			noRoom = dropped
		}
	}
	if noRoom+tooLong > 0 {
		return verdict.Result{Outcome: verdict.Failed, IsSure: true, Detail: fmt.Sprintf("the connection table dropped %d packets since the round before", noRoom+tooLong)}
	}
	return verdict.Result{Outcome: verdict.Well, Detail: "the connection table drops nothing"}
}

// parseDrops sums the columns of net/stat/nf_conntrack (ct_cpu_seq_show in
// net/netfilter/nf_conntrack_standalone.c). Kernels differ in their columns. Chains have a
// limit since Linux 5.15, which has a column for it (chainlength) in the place of delete_list.
func parseDrops(text string) (sum counts, err error) {
	first, processors, _ := strings.Cut(text, "\n")
	heading := strings.Fields(first)
	sums := map[int]*int64{slices.Index(heading, "drop"): &sum.drop, slices.Index(heading, "insert_failed"): &sum.insertFailed}
	if sums[-1] != nil {
		return counts{}, fmt.Errorf("heading %s lacks drop or insert_failed", hostfile.Excerpt(first))
	}
	tooLong := slices.Index(heading, "chainlength")
	if tooLong >= 0 {
		sums[tooLong] = &sum.tooLong
	}
	if err := hostfile.CheckWhole(text); err != nil {
		return counts{}, err
	}
	if processors == "" {
		return counts{}, errors.New("there is no processor")
	}
	for line := range strings.Lines(processors) {
		columns := strings.Fields(line)
		if len(columns) != len(heading) {
			return counts{}, fmt.Errorf("a line of %d columns instead of %d", len(columns), len(heading))
		}
		for i, to := range sums {
			n, err := strconv.ParseUint(columns[i], 16, 32)
			if err != nil {
				return counts{}, fmt.Errorf("column %s: %s is not a hexadecimal number of 32 bits", heading[i], hostfile.Excerpt(columns[i]))
			}
			*to += int64(n)
		}
	}
	if tooLong < 0 && !slices.Contains(heading, "delete_list") {
		sum.tooLong = max(0, sum.insertFailed-sum.drop)
	}
	return sum, nil
}
