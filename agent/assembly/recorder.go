package assembly

import (
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// logRecorder logs the Events of a dry run.
type logRecorder struct {
	log *slog.Logger
	// next takes them too, unless it is nil.
	next record.EventRecorder
}

func (r logRecorder) Event(object runtime.Object, kind, reason, message string) {
	r.log.Info("dry run: would write an event", "type", kind, "reason", reason, "message", message)
	if r.next != nil {
		r.next.Event(object, kind, reason, message)
	}
}

func (r logRecorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r logRecorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(object, kind, reason, format, args...)
}
