package apiserver

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// FuzzNodeOf checks that any Node of the API is read with all its taints and conditions, in
// their order.
func FuzzNodeOf(f *testing.F) {
	for _, text := range []string{
		`{}`,
		`{"metadata":{"name":"a","managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{"f:taints":{}}}},{"manager":"taintlet","subresource":"status","time":"2026-01-31T12:00:00Z"},{"fieldsV1":null}]},
		  "spec":{"taints":[{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-31T12:00:00Z"},{"key":"a","value":"b","effect":"x"},{}]},
		  "status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":null},{"type":"HostMemoryPressure","status":"?"},{}]}}`,
		`{"metadata":{"deletionTimestamp":"0001-01-01T00:00:00Z","annotations":{"":""}},"spec":{"unschedulable":true}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		given := &corev1.Node{}
		if json.Unmarshal(text, given) != nil {
			return
		}
		node := NodeOf(given)
		if len(node.Taints) != len(given.Spec.Taints) || len(node.Conditions) != len(given.Status.Conditions) {
			t.Fatalf("%d taints and %d conditions of %s", len(node.Taints), len(node.Conditions), text)
		}
		for i, taint := range given.Spec.Taints {
			if read := node.Taints[i]; read.Key != taint.Key || read.Value != taint.Value || string(read.Effect) != string(taint.Effect) {
				t.Errorf("taint %d is %v", i, read)
			}
		}
	})
}

// FuzzRetryAfter checks that no answer puts a request off for longer than a second.
func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"", "1", "0", "-5", "3600", "99999999999999999999", "Wed, 21 Oct 2099 07:28:00 GMT", " 7", "1e9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, said string) {
		answer := http.Header{"Retry-After": {said}}
		hasten(answer)
		seconds, err := strconv.Atoi(answer.Get("Retry-After"))
		if said != "" && (err != nil || seconds > 1) {
			t.Errorf("%q has become %q", said, answer.Get("Retry-After"))
		}
	})
}

// FuzzAPIServer checks that the address of an API server is refused, or is a host and a port.
func FuzzAPIServer(f *testing.F) {
	for _, text := range []string{"https://10.0.0.1", "http://a:6443/b", "[::1]:6443", "https://[fe80::1%25eth0]", "://", "a", "https://a:b", "https://:443"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found := hostAndPort(&rest.Config{Host: text})
		if host, port, err := net.SplitHostPort(found); found != "" && (err != nil || net.JoinHostPort(host, port) != found || port == "") {
			t.Errorf("%q is %q: %v", text, found, err)
		}
	})
}
