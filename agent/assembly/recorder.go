package assembly

import (
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/agent"
)

// logRecorder logs the Events of a dry run.
type logRecorder struct {
	log *slog.Logger
	// next takes them too, unless it is nil.
	next agent.Recorder
}

func (r logRecorder) Event(object runtime.Object, kind, reason, message string) {
	r.log.Info("dry run: would write an event", "type", kind, "reason", reason, "message", message)
	if r.next != nil {
		r.next.Event(object, kind, reason, message)
	}
}
