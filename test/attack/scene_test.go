package attack

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/chart"
	"github.com/taintlet/taintlet/test/cluster"
)

// Every attack on the policies is denied.
func TestPolicyAttacks(t *testing.T) {
	c := cluster.New(t, cluster.Options{})
	s := setScene(t, c)
	for _, a := range policyAttacks() {
		attempts, denied := a.run(t, s)
		if attempts == 0 || denied != attempts {
			t.Errorf("%s: %d of %d denied", a.name, denied, attempts)
		}
		t.Logf("%s: %d attempts, %d denied", a.name, attempts, denied)
	}
}

// setScene installs the chart and makes two Nodes.
func setScene(t *testing.T, c *cluster.Cluster) *scene {
	t.Helper()
	chart.Apply(t.Context(), t, c, chart.Render(t, "--set", "namespace.create=true,keep=false,cleanup.afterUninstall=false,cleanup.stale=true"))
	chart.WaitInForce(t.Context(), t, c, chart.Namespace, "taintlet-nodes", "taintlet-events")
	s := &scene{admin: c.Client(), node: "attacked", other: "other"}
	c.Register(t, s.node)
	c.Register(t, s.other)
	client := func(token string) kubernetes.Interface {
		config := c.WithToken(token)
		config.QPS = -1
		return mustClient(t, config)
	}
	cluster.Eventually(t, "the agent's pod", func() error {
		pods, err := c.Client().CoreV1().Pods(chart.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + s.node})
		if err != nil || len(pods.Items) == 0 {
			return errors.Join(errors.New("there is none"), err)
		}
		s.agent = client(chart.TokenOfPod(t, c, &pods.Items[0]))
		return nil
	})
	s.cleanup = client(chart.TokenOf(t, c, chart.Namespace, chart.Account+"-cleanup-stale", nil))
	return s
}

func mustClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
