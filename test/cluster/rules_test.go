package cluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

// What agents may do is written in the chart, and in what is rendered from it. A copy
// elsewhere would drift: its agents would be refused what the real ones may do.
func TestRightsOfAgentsAreWrittenOnce(t *testing.T) {
	// Only agents look for the policy that keeps taints.
	rule := regexp.MustCompile(`(?i)resources: .*mutatingadmissionpolicybindings`)
	const root = "../.."
	var copies []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".yaml", ".md"}, filepath.Ext(path)) || path == root+"/test/cluster/rules_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if rule.Match(text) {
			copies = append(copies, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	copies = slices.DeleteFunc(copies, func(path string) bool { return strings.HasPrefix(path, root+"/deploy/") })
	if len(copies) > 0 {
		t.Errorf("the rights of agents are also in %v", copies)
	}
}

// Whoever may do what agents may is allowed all that the manifest grants, where it
// grants it, and no more.
func TestGrantAsAgent(t *testing.T) {
	c := shared.Require(t)
	const user = "like-an-agent"
	if err := c.GrantAsAgent(t.Context(), user); err != nil {
		t.Fatal(err)
	}
	config, err := c.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	as, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	may := func(attributes authorizationv1.ResourceAttributes) bool {
		review, err := as.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	for _, question := range shippedRights(t) {
		Eventually(t, "the right to "+question.Verb+" "+question.Resource+" in "+question.Namespace, func() error {
			if !may(question) {
				return errors.New("it is not there")
			}
			return nil
		})
	}
	for _, question := range []authorizationv1.ResourceAttributes{
		{Verb: "delete", Resource: "nodes"}, {Verb: "create", Resource: "events", Namespace: "kube-system"}, {Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices"},
	} {
		if may(question) {
			t.Errorf("may %v", question)
		}
	}
}

// shippedRights is what the roles of the manifest grant to agents, each verb on each resource.
func shippedRights(t *testing.T) (all []authorizationv1.ResourceAttributes) {
	t.Helper()
	objects, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		var role rbacv1.Role                                                                                            // a ClusterRole has the same rules
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" || object.GetName() == "taintlet-oncall" { // which is for people
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				resource, sub, _ := strings.Cut(rule.Resources[0], "/")
				right := authorizationv1.ResourceAttributes{Verb: verb, Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Namespace: role.Namespace}
				if len(rule.ResourceNames) > 0 {
					right.Name = rule.ResourceNames[0]
				}
				all = append(all, right)
			}
		}
	}
	return all
}
