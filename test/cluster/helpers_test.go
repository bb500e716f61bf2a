package cluster

import (
	"runtime"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

func taint(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
}

// endThreads makes that many goroutines hold a thread each, the runtime's idle
// ones first, and ends them all.
func endThreads(count int) {
	var held, ended sync.WaitGroup
	held.Add(count)
	for range count {
		ended.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			held.Done()
			held.Wait()
		})
	}
	ended.Wait()
}
