package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	// requestRate is how many requests a second a check makes.
	requestRate = 50
	// tellsWhoAsks is what the API server is told of the writer of a dry run that is not an
	// agent's.
	tellsWhoAsks = "taintlet-check"
	// maxAnswer bounds an answer, in bytes. The pods of 5,000 agents take 60 MB.
	maxAnswer = 128 << 20
)

// api asks the API server as one user. Objects are decoded into structs that have
// what is used and no more: the types of all API groups would cost every agent
// memory, since it is the same binary.
type api struct {
	client rest.Interface
	// manager is what the API server is told of the writer of a dry run.
	manager string
}

func newAPI(config *rest.Config) (api, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // to decode errors
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestRate, requestRate
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	apiserver.Bound(config, maxAnswer)
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return api{}, fmt.Errorf("API client: %w", err)
	}
	return api{client, tellsWhoAsks}, nil
}

// get reads an object.
func (a api) get(ctx context.Context, path string, into any) error {
	return decode(a.client.Get().AbsPath(path).Do(ctx), into)
}

// find reads an object that may not be there.
func (a api) find(ctx context.Context, path string, into any) (found bool, err error) {
	err = a.get(ctx, path, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// selected lists objects with a label.
func (a api) selected(ctx context.Context, path, labels string, into any) error {
	return a.listed(ctx, path, url.Values{"labelSelector": {labels}}, into)
}

// listed lists objects, by the parameters of the list.
func (a api) listed(ctx context.Context, path string, query url.Values, into any) error {
	request := a.client.Get().AbsPath(path)
	for name, values := range query {
		request = request.Param(name, values[0])
	}
	return decode(request.Do(ctx), into)
}

// ask creates an object of a kind that is a question, such as a review.
func (a api) ask(ctx context.Context, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return decode(a.client.Post().AbsPath(path).Body(data).Do(ctx), into)
}

// tryCreate is what creating an object would do.
func (a api) tryCreate(ctx context.Context, path string, body any) error {
	return a.try(ctx, a.client.Post(), path, body, nil)
}

// tryUpdate is what replacing an object would do.
func (a api) tryUpdate(ctx context.Context, path string, body any) error {
	return a.try(ctx, a.client.Put(), path, body, nil)
}

// tryPatch is what merging a patch into an object would make of it.
func (a api) tryPatch(ctx context.Context, path string, body, into any) error {
	return a.try(ctx, a.client.Patch(types.MergePatchType), path, body, into)
}

func (a api) try(ctx context.Context, request *rest.Request, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return decode(request.AbsPath(path).Param("dryRun", metav1.DryRunAll).Param("fieldManager", a.manager).Body(data).Do(ctx), into)
}

func decode(result rest.Result, into any) error {
	data, err := result.Raw()
	if err != nil {
		if explained := result.Error(); explained != nil {
			return explained
		}
		return err
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}
