package integration

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
)

// Another client adds, changes and removes taints of its own while ours come
// and go 200 times. At every moment the Node carries exactly the foreign
// taints that the other client last wrote, in its order.
func TestApplyLosesNoForeignTaint(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node := c.Register(t, "busy")
	client, err := apiserver.NewClient(c.Admin(), node.Name)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	versions := watchNode(ctx, t, c, node.Name)
	stop := make(chan struct{})
	var other sync.WaitGroup
	var wrote [][]string // each list of foreign taints, in the order of writing
	other.Go(func() { wrote = rewriteForeign(t, c, node.Name, stop) })

	ours := taints.Pair{Key: "example.com/ours", Effect: taints.NoSchedule}
	base := apiserver.NodeOf(c.GetNode(t, node.Name))
	conflicts := 0
	for i := range 200 {
		desired := taints.Desired{Owned: []taints.Pair{ours}}
		if i%2 == 0 {
			desired.Taints = []taints.Taint{{Key: ours.Key, Effect: ours.Effect, Value: strconv.Itoa(i)}}
		}
		before := base.ResourceVersion
		// The other client never pauses: on a busy machine it may win ten times.
		err := apiserver.ErrContended
		for errors.Is(err, apiserver.ErrContended) {
			base, err = client.Apply(ctx, base, desired)
		}
		if err != nil {
			t.Fatal(err)
		}
		if base.Has(ours) != (i%2 == 0) {
			t.Fatalf("change %d did not land: %v", i, base.Taints)
		}
		if consecutive(before, base.ResourceVersion) {
			conflicts++
		}
	}
	close(stop)
	other.Wait()
	if conflicts == 200 {
		t.Fatal("the other client never came in between: nothing was tested")
	}
	follows(t, wrote, versions)
}

func consecutive(a, b string) bool {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && y == x+1
}

// rewriteForeign changes the foreign taints again and again: adds one, changes
// a value, removes one, reverses the order. It returns each list that it wrote.
func rewriteForeign(t *testing.T, c *cluster.Cluster, name string, stop <-chan struct{}) [][]string {
	wrote := [][]string{nil}
	nodes := c.Client().CoreV1().Nodes()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return wrote
		default:
		}
		always := wait.Backoff{Steps: 1000, Duration: time.Millisecond}
		err := retry.RetryOnConflict(always, func() error {
			node, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			list := node.Spec.Taints
			first := slices.IndexFunc(list, isForeign)
			if first < 0 && i > 0 {
				return errors.New("all foreign taints are lost")
			}
			switch i % 4 {
			case 0, 1:
				if i%4 == 0 && len(list) > 40 { // two follow before one goes
					list = slices.DeleteFunc(list, isForeign)
				}
				list = append(list, corev1.Taint{Key: fmt.Sprintf("foreign-%d", i), Effect: corev1.TaintEffectPreferNoSchedule})
			case 2:
				list[first].Value = strconv.Itoa(i)
				slices.Reverse(list)
			case 3:
				list = slices.Delete(list, first, first+1)
			}
			node.Spec.Taints = list
			_, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{})
			if err == nil {
				wrote = append(wrote, foreignOf(list))
			}
			return err
		})
		if err != nil {
			t.Error(err)
			return wrote
		}
	}
}

func isForeign(t corev1.Taint) bool { return t.Key != "example.com/ours" }

func foreignOf(list []corev1.Taint) []string {
	var out []string
	for _, taint := range list {
		if isForeign(taint) {
			out = append(out, taint.ToString())
		}
	}
	return out
}

// follows checks that the versions of the Node show the written lists, one
// after the other: nothing lost, reordered or brought back.
func follows(t *testing.T, wrote [][]string, versions <-chan *corev1.Node) {
	t.Helper()
	at := 0
	for at < len(wrote)-1 {
		version := <-versions
		shown := foreignOf(version.Spec.Taints)
		switch {
		case slices.Equal(shown, wrote[at]):
		case slices.Equal(shown, wrote[at+1]):
			at++
		default:
			t.Fatalf("version %s shows %v\nafter %v\nbefore %v", version.ResourceVersion, shown, wrote[at], wrote[at+1])
		}
	}
}
