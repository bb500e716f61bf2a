package ask

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// One round queries podsAtOnce of the DNS pods, or fewPods while the class is healthy. One answer
// is enough.
const podsAtOnce, fewPods = 3, 2

// Pods connects to DNS pods on other Nodes. No other class crosses the overlay between the hosts.
type Pods struct {
	seen reached
}

// NewPods returns the class that connects to DNS pods.
func NewPods() *Pods { return &Pods{seen: reached{}} }

// Ask implements Check.
func (p *Pods) Ask(ctx context.Context, in *verdict.Surroundings, patience time.Duration) verdict.Result {
	p.seen.keep(in.DNSPods)
	most := fewPods
	if in.Troubled {
		most = podsAtOnce
	}
	chosen := p.choose(in.DNSPods, most)
	return p.evaluate(chosen, Together(chosen, func(pod netip.AddrPort) error { return knock(ctx, pod, patience) }))
}

// choose takes some pods at random, but first those that were reached before, which can fail.
func (p *Pods) choose(all []netip.AddrPort, most int) []netip.AddrPort {
	var seen, others []netip.AddrPort
	for _, i := range rand.Perm(len(all)) {
		if p.seen[all[i]] {
			seen = append(seen, all[i])
		} else {
			others = append(others, all[i])
		}
	}
	return append(seen, others...)[:min(len(all), most)]
}

// evaluate says what the connections mean. Pods that were never reached since the
// start do not count. A refusal proves nothing: it can come from the pod, which shows that
// the overlay works, or from a packet filter of this host.
func (p *Pods) evaluate(asked []netip.AddrPort, errs []error) verdict.Result {
	pods := make(map[netip.AddrPort]bool, len(asked))
	there, refused := 0, 0
	var failed []string
	for i, pod := range asked {
		switch {
		case isThere(errs[i]) && errs[i] != nil:
			refused++
		case errs[i] == nil:
			p.seen[pod] = true
			there++
			pods[pod] = true
		case p.seen[pod]:
			failed = append(failed, pod.String()+": "+why(errs[i]))
			pods[pod] = false
		}
	}
	switch {
	case there > 0:
		return verdict.Result{Pods: pods, Outcome: verdict.Well, Detail: fmt.Sprintf("reached %d of %d DNS pods on other Nodes", there, len(asked))}
	case refused > 0:
		return verdict.Result{Detail: fmt.Sprintf("%d of %d DNS pods on other Nodes refuse, and none answers", refused, len(asked))}
	case len(failed) > 0:
		return verdict.Result{Pods: pods, Outcome: verdict.Failed, Detail: "no DNS pod on another Node reached: " + strings.Join(failed, "; ")}
	case len(asked) > 0:
		return verdict.Result{Never: true, Detail: "no DNS pod on another Node was ever reached"}
	}
	return verdict.Result{Detail: "no DNS pods on other Nodes are known"}
}
