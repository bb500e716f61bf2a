package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// obstacle stops an agent's writing, or a part of it, until it is removed.
type obstacle struct {
	// put puts it there and waits until the agent has met it; remove removes it.
	put, remove func(o *obstructed)
	// as is who the agent is; nil: the bearer of a pod's token.
	as func(o *obstructed) *rest.Config
	// anyway: taints are set all the same.
	anyway bool
}

// obstructed is an agent, its Node and its host.
type obstructed struct {
	t    *testing.T
	c    *cluster.Cluster
	node string
	host *fixtures.Host
	a    *bed.Agent
}

func (o *obstructed) annotate(value string) {
	o.c.RunKubectl(o.t, "annotate", "--overwrite", "node", o.node, value)
}

// grant lets a user patch Nodes; revoke ends that.
func (o *obstructed) grant() {
	if err := o.c.Grant(o.t.Context(), o.node, o.node,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"get", "list", "watch", "patch"}}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *obstructed) revoke() {
	if err := o.c.Client().RbacV1().ClusterRoleBindings().Delete(o.t.Context(), o.node, metav1.DeleteOptions{}); err != nil {
		o.t.Fatal(err)
	}
	if err := o.c.Client().RbacV1().ClusterRoles().Delete(o.t.Context(), o.node, metav1.DeleteOptions{}); err != nil {
		o.t.Fatal(err)
	}
}

// obstacles are all that stop the writing, as far as they end by themselves or by
// a person's hand.
func obstacles() map[string]obstacle {
	return map[string]obstacle{
		"a newer record": {
			put: func(o *obstructed) {
				o.annotate(`taintlet.dev/record={"version":2}`)
				o.c.WaitAgentEvent(o.t, o.node, "NewerRecord", "")
			},
			remove: func(o *obstructed) { o.annotate("taintlet.dev/record-") },
		},
		"an unreadable record": {
			put:    func(o *obstructed) { o.annotate("taintlet.dev/record=nonsense") },
			remove: func(*obstructed) {},
			anyway: true,
		},
		"no room for annotations": {
			put: func(o *obstructed) {
				const all, left = 256 << 10, 40 // bytes: what the API server lets all annotations have, and what is left of it
				room := all - left
				for key, value := range o.c.GetNode(o.t, o.node).Annotations {
					room -= len(key) + len(value)
				}
				for _, key := range []string{"example.com/notes-1", "example.com/notes-2", "example.com/notes-3"} {
					o.annotate(key + "=" + strings.Repeat("x", room/3-len(key)))
				}
			},
			remove: func(o *obstructed) {
				waitNode(o.t, o.c, o.node, func(n *corev1.Node) bool {
					c := cluster.Condition(n, "HostMemoryPressure")
					return c != nil && strings.Contains(c.Message, "record does not fit")
				})
				o.annotate("example.com/notes-1-")
				waitNode(o.t, o.c, o.node, func(n *corev1.Node) bool {
					return strings.Contains(n.Annotations["taintlet.dev/record"], "memory-pressure:NoSchedule")
				})
			},
			anyway: true,
		},
		"a pause": {
			put: func(o *obstructed) {
				o.annotate("taintlet.dev/paused=true")
				o.c.WaitAgentEvent(o.t, o.node, "TaintsPaused", "")
			},
			remove: func(o *obstructed) { o.annotate("taintlet.dev/paused-") },
		},
		"a missing permission": {
			as: func(o *obstructed) *rest.Config {
				o.grant()
				as, err := o.c.Config(o.node)
				if err != nil {
					o.t.Fatal(err)
				}
				return as
			},
			put:    (*obstructed).revoke,
			remove: (*obstructed).grant,
		},
		"a deleted Node": {
			put: func(o *obstructed) {
				if err := o.c.Client().CoreV1().Nodes().Delete(o.t.Context(), o.node, metav1.DeleteOptions{}); err != nil {
					o.t.Fatal(err)
				}
				o.a.WaitLog("node not found")
			},
			remove: func(o *obstructed) {
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.node}}
				if _, err := o.c.Client().CoreV1().Nodes().Create(o.t.Context(), node, metav1.CreateOptions{}); err != nil {
					o.t.Fatal(err)
				}
			},
		},
		"a configuration without the rule": {
			put: func(o *obstructed) {
				o.a.WaitMetric(`taintlet_config_info{hash="` + o.a.Reconfigure(quick+"rules: []\n") + `"} 1`)
			},
			remove: func(o *obstructed) { o.a.Reconfigure(quick + "heartbeat: 1m\n") },
		},
	}
}

// Whatever stops the writing, it goes on when that is over, without a restart.
func TestWritingResumes(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	for name, obstacle := range obstacles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &obstructed{t: t, c: c, host: fixtures.NewHost(t)}
			o.node = c.Register(t, "resumes-after-"+strings.ToLower(strings.ReplaceAll(name, " ", "-"))).Name
			as := identity(t, c, o.node)
			if obstacle.as != nil {
				as = obstacle.as(o)
			}
			o.a = startAgentAs(t, as, o.node, o.host, quick)
			waitNode(t, c, o.node, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))

			obstacle.put(o)
			o.host.Memory(2)
			if !obstacle.anyway {
				seen := o.a.Metric(`taintlet_probe_samples_total{condition="MemoryPressure",level="Degraded"}`)
				cluster.Eventually(t, "five bad samples", func() error {
					if now := o.a.Metric(`taintlet_probe_samples_total{condition="MemoryPressure",level="Degraded"}`); now < seen+5 {
						return fmt.Errorf("%d of them", now-seen)
					}
					return nil
				})
				if now, err := c.Client().CoreV1().Nodes().Get(t.Context(), o.node, metav1.GetOptions{}); err == nil && len(now.Spec.Taints) > 0 {
					t.Errorf("taints in spite of %s: %v", name, now.Spec.Taints)
				}
			} else {
				waitNode(t, c, o.node, cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
			}
			obstacle.remove(o)
			waitNode(t, c, o.node, cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule))
			o.host.Memory(50)
			waitNode(t, c, o.node, cluster.Not(cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule)))
			cluster.Eventually(t, "/readyz to be ok", func() error {
				if code, body := o.a.Get("/readyz"); code != http.StatusOK {
					return fmt.Errorf("%d %s", code, body)
				}
				return nil
			})
		})
	}
}
