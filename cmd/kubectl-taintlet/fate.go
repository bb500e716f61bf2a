package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// fate is what becomes of a pod when its Node gets a NoExecute taint.
type fate struct {
	// stays: the pod tolerates the taint for ever.
	stays bool
	// after is when a pod that does not stay is deleted; 0: at once.
	after time.Duration
}

// fateOf reckons which pods a NoExecute taint takes, as Kubernetes does: it returns the
// fate of a pod with these tolerations. As in the controller
// (processPodOnNode and getMinTolerationTime in
// pkg/controller/tainteviction/taint_eviction.go), the first toleration that
// matches decides, and one of 0 s or less is none. A toleration by comparison (Lt,
// Gt) counts: only an API server that has these lets a pod have one.
func fateOf(tolerations []corev1.Toleration, taint corev1.Taint) fate {
	for _, toleration := range tolerations {
		if !toleration.ToleratesTaint(klog.Logger{}, &taint, true) {
			continue
		}
		if toleration.TolerationSeconds == nil {
			return fate{stays: true}
		}
		return fate{after: time.Duration(max(0, *toleration.TolerationSeconds)) * time.Second}
	}
	return fate{}
}
