package assembly

import (
	"log/slog"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/taints"
)

// logRecorder logs the Events of a dry run.
type logRecorder struct {
	log *slog.Logger
	// next takes them too, unless it is nil.
	next agent.Recorder
}

func (r logRecorder) Event(node *taints.Node, kind, reason, message string) {
	r.log.Info("dry run: would write an event", "type", kind, "reason", reason, "message", message)
	if r.next != nil {
		r.next.Event(node, kind, reason, message)
	}
}
