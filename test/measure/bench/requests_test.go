package main

import (
	"github.com/taintlet/taintlet/test/bed"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/cluster"
)

func TestRequestsAreCountedOnceAndInTheirTime(t *testing.T) {
	second := func(n float64) time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n * float64(time.Second)))
	}
	request := func(id, user string, at float64) cluster.Request {
		r := cluster.Request{AuditID: id, RequestReceivedTimestamp: second(at)}
		r.User.Username = user
		return r
	}
	got := countRequests([]cluster.Request{
		request("1", "a", 0.5),
		request("2", "a", 1.5), // a watch begins
		request("2", "a", 1.5), // and ends
		request("3", "b", 1.7),
		request("4", "b", 2.5),
	}, second(1), second(2))
	if want := map[string]int{"a": 1, "b": 1}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestFiguresOfAnAgentThatLacksRightsDoNotCount(t *testing.T) {
	request := func(user string, code int) cluster.Request {
		r := cluster.Request{Verb: "list", RequestURI: "/apis/discovery.k8s.io/v1/namespaces/taintlet-system/endpointslices"}
		r.User.Username, r.ResponseStatus.Code = user, code
		return r
	}
	fine := []cluster.Request{request("others", http.StatusForbidden), request(bed.User, http.StatusOK), request(bed.User, http.StatusNotFound)}
	if err := checkRights(fine, bed.User); err != nil {
		t.Error(err)
	}
	if err := checkRights(append(fine, request(bed.User, http.StatusForbidden)), bed.User); err == nil {
		t.Error("a lookup was forbidden, and the figures count")
	}
}
