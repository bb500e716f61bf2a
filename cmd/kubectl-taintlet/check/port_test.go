package check

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A pod takes a port of its host as the scheduler sees it.
func TestPodsThatTakeThePort(t *testing.T) {
	for spec, want := range map[string]bool{
		`{"hostNetwork": true, "containers": [{"ports": [{"containerPort": 4808, "hostPort": 4808, "protocol": "TCP"}]}]}`:          true,
		`{"hostNetwork": true, "containers": [{}, {"ports": [{"containerPort": 80}, {"containerPort": 4808}]}]}`:                    true,
		`{"containers": [{"ports": [{"containerPort": 80, "hostPort": 4808}]}]}`:                                                    true,
		`{"initContainers": [{"restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 4808}]}], "containers": [{}]}`: true,
		`{"initContainers": [{"ports": [{"containerPort": 80, "hostPort": 4808}]}], "containers": [{}]}`:                            false,
		`{"containers": [{"ports": [{"containerPort": 4808}]}]}`:                                                                    false,
		`{"containers": [{"ports": [{"containerPort": 4808, "hostPort": 80}]}]}`:                                                    false,
		`{"hostNetwork": true, "containers": [{"ports": [{"containerPort": 4808, "hostPort": 4808, "protocol": "UDP"}]}]}`:          false,
		`{"hostNetwork": true, "containers": [{"ports": [{"containerPort": 9808, "hostPort": 9808}]}]}`:                             false,
		`{"hostNetwork": true}`: false,
	} {
		var pod corev1.Pod
		if err := json.Unmarshal([]byte(`{"spec": `+spec+`}`), &pod); err != nil {
			t.Fatal(err)
		}
		if got := declares(&pod, 4808); got != want {
			t.Errorf("%s: %t, want %t", spec, got, want)
		}
	}
}
