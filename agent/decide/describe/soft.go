package describe

import (
	"fmt"

	"github.com/taintlet/taintlet/taints"
)

// SoftSet says from which severity on a soft taint is set.
func SoftSet(taint taints.Taint, sample string, severity int) string {
	return fmt.Sprintf("%s; severity %d or more: soft taint %s", sample, severity, taint.String())
}

// SoftCleared says below which severity a soft taint is no longer needed.
func SoftCleared(taint taints.Taint, sample string, severity int) string {
	return fmt.Sprintf("%s; severity below %d: no more soft taint %s", sample, severity, taint.String())
}
