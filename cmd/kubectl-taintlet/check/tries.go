package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// checkCreatable tries to create the objects of the manifests. An account that may create roles can
// grant only permissions that it has. Kinds that the API server does not serve are those of
// keep.yaml, which another check reports.
func (s *scene) checkCreatable(ctx context.Context) (Line, error) {
	objects, err := installation.Manifests(s.Namespace)
	if err != nil {
		return Line{}, err
	}
	var refused, wrong []string
	for _, object := range objects {
		kind := object.GroupVersionKind()
		resource, _ := meta.UnsafeGuessKindToResource(kind) // they have regular plurals
		_, err = s.me.Dynamic.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, tryCreate(tellsWhoAsks))
		switch {
		case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err): // its kind, its namespace or its role is not there
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"): // and not of its contents
			p := installation.Permission{Verb: "create", Resource: resource.Resource, Namespace: object.GetNamespace()}
			refused = append(refused, p.String())
		default:
			wrong = append(wrong, fmt.Sprintf("%s %s: %v", kind.Kind, object.GetName(), err))
		}
	}
	if len(refused) > 0 {
		wrong = append([]string{"you may not " + terminal.Listed(slices.Compact(refused))}, wrong...)
	}
	if len(wrong) > 0 {
		return line(Failed, "%s", strings.Join(wrong, "; ")), nil
	}
	return line(OK, "you may create the objects of taintlet and grant their permissions: %d, as a dry run shows", len(objects)), nil
}

func (s *scene) checkNamespace(ctx context.Context) (Line, error) {
	namespace, err := s.me.CoreV1().Namespaces().Get(ctx, s.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return line(OK, "the namespace %s does not exist yet: create it as documented", s.Namespace), nil
	case err != nil:
		return Line{}, err
	case namespace.DeletionTimestamp != nil:
		return line(Failed, "the namespace %s is being deleted", s.Namespace).but("wait until it is gone; a finalizer may keep it"), nil
	}
	pod, err := podLikeOurs(s.Namespace)
	if err == nil {
		_, err = s.me.CoreV1().Pods(s.Namespace).Create(ctx, pod, tryCreate(tellsWhoAsks))
	}
	switch {
	case apierrors.IsForbidden(err):
		return line(Failed, "the namespace %s refuses the agents' pods: %v", s.Namespace, err), nil
	case err != nil:
		return Line{}, err
	}
	return line(OK, "the namespace %s accepts pods with hostNetwork and hostPID", s.Namespace), nil
}

// podLikeOurs is a pod of the DaemonSet, but for its account: that is not there yet.
func podLikeOurs(namespace string) (*corev1.Pod, error) {
	objects, err := installation.Manifests(namespace)
	for _, object := range objects {
		if object.GetKind() == "DaemonSet" {
			d := &appsv1.DaemonSet{}
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d)
			d.Spec.Template.Spec.ServiceAccountName = ""
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "taintlet-check-", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}, err
		}
	}
	return nil, err
}

// exceeding returns what the agents' account may do and an agent's stolen token must not allow.
func (s *scene) exceeding(ctx context.Context) (allowed []string, err error) {
	allowed, _, err = s.me.Review(ctx, s.Namespace, []installation.Permission{
		{Resource: "secrets", Verb: "get"},
		{Resource: "secrets", Verb: "list"},
		{Resource: "pods", Verb: "create"},
		{Resource: "pods", Verb: "delete"},
		{Resource: "nodes", Verb: "create"},
		{Resource: "nodes", Verb: "delete"},
		{Resource: "nodes", Subresource: "proxy", Verb: "get"},
		{Resource: "serviceaccounts", Subresource: "token", Verb: "create"},
	})
	return allowed, err
}

// checkRefused tries, as an agent, a write that each of the policies has to refuse.
func (s *scene) checkRefused(ctx context.Context) (Line, error) {
	name := s.names[0]
	agent, err := s.as(s.Namespace, account, name)
	if err != nil {
		return Line{}, err
	}
	var wrong, refused []string
	for _, try := range []struct {
		policy, what string
		do           func() error
	}{
		{"taintlet-nodes", "an agent's write of another program's annotation", func() error {
			_, err := tryPatch(ctx, agent, account, name, map[string]any{"metadata": map[string]any{"annotations": map[string]string{"example.com/taintlet-check": "1"}}})
			return err
		}},
		{"taintlet-events", "an agent's Event about another Node", func() error {
			event := &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: "taintlet-check", Namespace: metav1.NamespaceDefault},
				InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: name + "-other"},
			}
			_, err := agent.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, event, tryCreate(account))
			return err
		}},
		{"taintlet-leases", "an agent's claim of a slot for another Node", func() error {
			lease, err := s.me.CoordinationV1().Leases(s.Namespace).Get(ctx, apiserver.SlotPrefix+"0", metav1.GetOptions{})
			if err == nil {
				lease.Spec.HolderIdentity = new(name + "-other")
				_, err = agent.CoordinationV1().Leases(s.Namespace).Update(ctx, lease, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: account})
			}
			return err
		}},
	} {
		switch err := try.do(); {
		case mayNotImpersonate(err):
			return Line{}, err
		case err == nil:
			wrong = append(wrong, fmt.Sprintf("the policy %s is not in force: %s is accepted", try.policy, try.what))
		case denied(err, try.policy):
			refused = append(refused, try.what)
		case !apierrors.IsNotFound(err): // without slots no Node evicts
			wrong = append(wrong, fmt.Sprintf("the policy %s is not in force: %s is refused by something else: %v", try.policy, try.what, err))
		}
	}
	if len(wrong) > 0 {
		return line(Failed, "%s", strings.Join(wrong, "; ")), nil
	}
	return line(OK, "the policies are in force: they refuse %s", strings.Join(refused, ", ")), nil
}

// checkKeep tries the policy that keeps taints before a Node has one, with a write in the name of the
// node-lifecycle-controller. Without the permission for that, it reports what the agents have noticed.
func (s *scene) checkKeep(ctx context.Context) (Line, error) {
	switch {
	case s.fleet.Installation.Served[installation.MutatingPolicies].Empty():
		return line(OK, "stand-ins are used: this API server does not serve MutatingAdmissionPolicy, which deploy/keep.yaml needs"), nil
	case !s.fleet.Installation.HasKeep():
		return line(Warning, "deploy/keep.yaml is not installed").but("apply deploy/keep.yaml, or upgrade the chart; without it, stand-ins replace the well-known taints"), nil
	}
	noticed := slices.IndexFunc(s.report.Findings, func(p status.Finding) bool { return p.Code == status.KeepPolicyFails })
	keeps, err := s.keeps(ctx, s.untainted)
	switch {
	case err == nil && !keeps:
		return line(Failed, "the policy %s fails: it lets the node-lifecycle-controller remove %s, as a dry run on Node %s shows; stand-ins are used until it works", taints.KeepPolicyName, keptPair(), s.untainted), nil
	case noticed >= 0 && err == nil:
		return line(Warning, "the policy %s works now, and agents do not use it yet: %s", taints.KeepPolicyName, s.report.Findings[noticed].Text).
			but("wait: an agent looks for changes to the policy every 5 minutes, and tries an unchanged policy again after a day"), nil
	case noticed >= 0:
		return line(Failed, "%s", s.report.Findings[noticed].Text), nil
	case err != nil:
		return Line{}, err
	}
	return line(OK, "the policy %s works: a dry run as the node-lifecycle-controller keeps %s on Node %s", taints.KeepPolicyName, keptPair(), s.untainted), nil
}

// keptPair is a pair that the policy must keep.
func keptPair() taints.Pair {
	return taints.Pair{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
}

// keeps reports whether the policy puts the pair back into a write of the
// node-lifecycle-controller. In a dry run the policy reads the annotation of the write, so any Node
// without the pair is suitable. A taint of another program passes through as well.
func (s *scene) keeps(ctx context.Context, node string) (bool, error) {
	if node == "" {
		return false, untold("every Node already has the taint of the dry run")
	}
	controller, err := s.as(metav1.NamespaceSystem, "node-controller", "")
	if err != nil {
		return false, err
	}
	others := taints.Taint{Key: "taintlet.dev/check", Effect: taints.NoExecute, TimeAdded: time.Now().UTC().Truncate(time.Second)}
	after, err := tryPatch(ctx, controller, tellsWhoAsks, node, map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{taints.HeldAnnotation: keptPair().Key}},
		"spec":     map[string]any{"taints": []taints.Taint{others}},
	})
	return err == nil && after.Has(keptPair()) && after.Has(others.Pair()), err
}

// tryCreate are the options of a creation of which nothing is kept.
func tryCreate(manager string) metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager}
}

// checkRulesAllowed tries, as an agent, to set all taints that the configuration asks
// for: the policies name them, and are changed apart from the ConfigMap where there is no
// chart.
func (s *scene) checkRulesAllowed(ctx context.Context) (Line, error) {
	all := map[taints.Pair]taints.Taint{}
	for _, cfg := range s.configs() { // one at a time, as a Node has one: the policy bounds how many taints are added
		wanted := wantedBy(cfg)
		maps.Copy(all, wanted)
		switch err := s.trySet(ctx, s.names[0], wanted); {
		case mayNotImpersonate(err):
			return Line{}, err
		case denied(err, "taintlet-nodes"):
			return line(Failed, "the policy taintlet-nodes refuses taints of the configuration: %v", err), nil
		case err != nil:
			return line(Failed, "an agent cannot set the taints of the configuration: %v", err).but("find out who refuses it: permissions, another admission policy or a webhook"), nil
		}
	}
	return line(OK, "the agents may set the taints of the configuration, and their stand-ins: %d", len(all)), nil
}

// wantedBy are the taints that a configuration can lead to, by their pairs.
func wantedBy(cfg *config.Config) map[taints.Pair]taints.Taint {
	wanted := map[taints.Pair]taints.Taint{}
	for _, rule := range cfg.Policy().Rules {
		pair := rule.Taint.Pair()
		wanted[pair] = pair.With(rule.Taint.Value)
		if rule.Level > probes.OK {
			standIn := taints.StandInFor(pair, cfg.KeyPrefix)
			wanted[standIn] = standIn.With(rule.Taint.Value)
		}
	}
	return wanted
}

// trySet tries, as the agent of a Node, to set taints beside those that are there.
func (s *scene) trySet(ctx context.Context, name string, wanted map[taints.Pair]taints.Taint) error {
	node, err := s.me.Node(ctx, name)
	if err != nil {
		return err
	}
	after := slices.Clone(node.Taints)
	for pair, taint := range wanted {
		if !node.Has(pair) {
			after = append(after, taint)
		}
	}
	agent, err := s.as(s.Namespace, account, name)
	if err != nil {
		return err
	}
	_, err = tryPatch(ctx, agent, account, name, map[string]any{"spec": map[string]any{"taints": after}})
	return err
}

// as returns a client that impersonates an account, with the token of a pod on that Node; empty:
// of no pod.
func (s *scene) as(namespace, account, node string) (*installation.Client, error) {
	config := rest.CopyConfig(s.Config)
	config.Impersonate = installation.User(namespace, account)
	if node != "" {
		config.Impersonate.Extra = map[string][]string{nodeExtra: {node}}
	}
	return installation.NewClient(config)
}

// tryPatch returns the Node that merging a patch would make. The policies let agents write
// under no manager but their account.
func tryPatch(ctx context.Context, as *installation.Client, manager, node string, patch any) (*taints.Node, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: manager}
	after, err := as.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, data, options)
	if err != nil {
		return nil, err
	}
	return apiserver.NodeOf(after), nil
}

func denied(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
}

func mayNotImpersonate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "impersonate")
}
