package config

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
)

// Reported is about a condition of the Node that another program reports, such as
// node-problem-detector. Its status is the sample.
type Reported struct {
	// Type is the condition's type, such as KernelDeadlock. BadStatus is the status that is Degraded.
	Type      string `json:"type"`
	BadStatus bool   `json:"badStatus"`
	// StaleAfter is how long its reporter may leave it as it is, its heartbeat included, until it
	// is Unknown. 0: for ever.
	StaleAfter decide.Duration `json:"staleAfter" range:"0,1m..24h"`
	Sampling
}

// defaultReported waits for three heartbeats of node-problem-detector (5m,
// --k8s-exporter-heartbeat-period).
func defaultReported() *Reported {
	r := &Reported{BadStatus: true, StaleAfter: seconds(900), Sampling: DefaultSampling(10*time.Second, 2, 3)}
	r.MinInterval, r.FollowUp = time.Second, 0 // a status does not change more often, and says the same at once again
	r.Debounce.UnknownAfter = seconds(1800)
	return r
}

// aType is a type of a condition that becomes ours behind "Host".
var aType = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// Validate returns every impossible value. It refuses condition types that taintlet, the kubelet or
// network plugins write, and Ready: the control plane sets its own taints for these.
func (r *Reported) Validate(at *field.Path) field.ErrorList {
	at = at.Child("type")
	switch {
	case r.Type == string(corev1.NodeReady), slices.ContainsFunc(HostSchema(), func(d Definition) bool { return string(d.Name) == r.Type }):
		return field.ErrorList{field.Forbidden(at, r.Type+" has its taint from the control plane")}
	case strings.HasPrefix(r.Type, "Host"), r.Type == strings.TrimPrefix(decide.RepairType, "Host"):
		return field.ErrorList{field.Forbidden(at, r.Type+" may be one of taintlet's own conditions")}
	case !aType.MatchString(r.Type):
		return field.ErrorList{field.Invalid(at, r.Type, "must be at most 63 letters and digits that begin with a capital, such as KernelDeadlock")}
	}
	return nil
}
