package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	someUID  = "7c0f2b1e-3d4a-4f5b-8c6d-0123456789d1"
	otherUID = "7c0f2b1e-3d4a-4f5b-8c6d-0123456789d2"
	// staticUID is the hash of a static pod.
	staticUID = "0123456789abcdef0123456789abcdef"
)

// withMessages is a Report of Nodes with a message each.
func withMessages(messages ...string) Report {
	var r Report
	for i, message := range messages {
		r.Nodes = append(r.Nodes, Node{Name: fmt.Sprint("node-", i), Conditions: []Condition{{Name: "MemoryPressure", Message: message}, {Name: "PIDPressure", Message: message}}})
	}
	return r
}

// A message shows the names of pods, also of a static one, and keeps the UIDs of those that are not
// known. Each Node with such a message is asked once.
func TestPodNames(t *testing.T) {
	t.Parallel()
	var asked []string
	pod := func(name, uid, hash string) *metav1.PartialObjectMetadata {
		p := &metav1.PartialObjectMetadata{}
		p.Namespace, p.Name, p.UID, p.Annotations = "shop", name, types.UID(uid), map[string]string{configAnnotation: hash}
		return p
	}
	message := "low; pod " + someUID + " (java) took 3 GiB; the largest is pod " + otherUID + " (x) with 4 GiB, then pod " + staticUID
	r := withMessages(message, "fine", message)
	r.namePods(func(node string) ([]*metav1.PartialObjectMetadata, error) {
		asked = append(asked, node)
		return []*metav1.PartialObjectMetadata{pod("cart-0", someUID, ""), pod("etcd", "", staticUID), pod("forged", "", "")}, nil
	})
	if want := "low; pod shop/cart-0 (java) took 3 GiB; the largest is pod " + otherUID + " (x) with 4 GiB, then pod shop/etcd"; r.Nodes[2].Conditions[1].Message != want {
		t.Errorf("%q", r.Nodes[2].Conditions[1].Message)
	}
	if strings.Join(asked, " ") != "node-0 node-2" {
		t.Errorf("asked %v", asked)
	}
}

// It says when names cannot be looked up, once, and asks no more; and it asks for a bounded number
// of Nodes.
func TestPodNamesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   error
		why   string
		asked int
	}{
		{apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")), "you are not allowed to", 1},
		{errors.New("b\x1bd"), "b?d", 1},
		{nil, "", mostLookups},
	} {
		asked, why := 0, ""
		r := withMessages(slices.Repeat([]string{"pod " + someUID + " (java) took 3 GiB"}, 200)...)
		r.namePods(func(string) ([]*metav1.PartialObjectMetadata, error) {
			asked++
			return nil, test.err
		})
		for _, u := range r.Unread {
			why += u.Why
		}
		if why != test.why || asked != test.asked {
			t.Errorf("asked %d: %q, want %+v", asked, why, test)
		}
	}
}
