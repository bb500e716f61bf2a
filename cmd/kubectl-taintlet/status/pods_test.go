package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	someUID  = "7c0f2b1e-3d4a-4f5b-8c6d-0123456789d1"
	otherUID = "7c0f2b1e-3d4a-4f5b-8c6d-0123456789d2"
)

// withMessages is a Report of Nodes with a message each.
func withMessages(messages ...string) Report {
	var r Report
	for i, message := range messages {
		r.Nodes = append(r.Nodes, Node{Name: fmt.Sprint("node-", i), Conditions: []Condition{{Name: "MemoryPressure", Message: message}, {Name: "PIDPressure", Message: message}}})
	}
	return r
}

// A message shows the names of pods, and is kept as it is in JSON. Each Node is asked for
// once, and again only for a pod that is not known, after a while.
func TestPodNames(t *testing.T) {
	t.Parallel()
	var asked []string
	p := newPodNames(func(_ context.Context, node string) (map[string]Culprit, error) {
		asked = append(asked, node)
		return map[string]Culprit{someUID: {someUID, "shop", "cart-0"}}, nil
	})
	now := time.Unix(1e9, 0)
	message := "low; pod " + someUID + " (java) took 3 GiB; the largest is pod " + otherUID + " (x) with 4 GiB"
	r := withMessages(message, "fine", message)
	kept := r.Nodes[0].Conditions
	for range 3 { // as a watch does
		p.resolve(t.Context(), &r, now)
	}
	c := r.Nodes[0].Conditions[0]
	if want := "low; pod shop/cart-0 (java) took 3 GiB; the largest is pod " + otherUID + " (x) with 4 GiB"; c.text() != want || c.Message != message || len(c.Culprits) != 1 {
		t.Errorf("%q, %+v", c.text(), c)
	}
	if kept[0].Culprits != nil {
		t.Error("what the Fleet keeps was changed")
	}
	if strings.Join(asked, " ") != "node-0 node-2" {
		t.Errorf("asked %v", asked)
	}
	p.resolve(t.Context(), &r, now.Add(readEvery))
	if len(asked) != 4 {
		t.Errorf("asked %v", asked)
	}
	if lines := strings.Join(r.Lines(Format{Wide: true}), "\n"); !strings.Contains(lines, "pod shop/cart-0 (java)") {
		t.Errorf("not in the table:\n%s", lines)
	}
}

// It says when names cannot be looked up, once, and asks for a bounded number of Nodes.
func TestPodNamesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, err := range map[string]error{
		"you are not allowed to": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")),
		"b?d":                    errors.New("b\x1bd"),
	} {
		asked := 0
		p := newPodNames(func(context.Context, string) (map[string]Culprit, error) {
			asked++
			return nil, err
		})
		messages := make([]string, 200)
		for i := range messages {
			messages[i] = "pod " + someUID + " (java) took 3 GiB"
		}
		r := withMessages(messages...)
		p.resolve(t.Context(), &r, time.Unix(1e9, 0))
		if len(r.Unread) != 1 || r.Unread[0].Why != text || asked != mostLookups {
			t.Errorf("asked %d: %+v, want %q", asked, r.Unread, text)
		}
	}
}
