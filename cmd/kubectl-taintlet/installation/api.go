package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	// requestRate is how many requests a second are made.
	requestRate = 50
	// page is how many objects one request returns.
	page = "500"
	// maxAnswer bounds a page, in bytes: a pod has some 10 KB.
	maxAnswer = 64 << 20
)

// api asks the API server. Objects are decoded into structs that have the fields in use.
type api struct{ client rest.Interface }

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
	return api{client}, nil
}

// get reads an object, or one page of a list.
func (a api) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	request := a.client.Get().AbsPath(path)
	for name, values := range query {
		request = request.Param(name, values[0])
	}
	return raw(request.Do(ctx))
}

// ask creates an object of a kind that is a question, such as a review.
func (a api) ask(ctx context.Context, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answer, err := raw(a.client.Post().AbsPath(path).Body(data).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// raw returns the answer to a request, or the error that the API server explains.
func raw(result rest.Result) ([]byte, error) {
	data, err := result.Raw()
	if err == nil {
		return data, nil
	}
	if explained := result.Error(); explained != nil {
		return nil, explained
	}
	return nil, err
}

// list reads all objects of a kind, page by page.
func list[T any](ctx context.Context, a api, path string, query url.Values) ([]T, error) {
	query.Set("limit", page)
	var all []T
	for {
		data, err := a.get(ctx, path, query)
		if err != nil {
			return nil, err
		}
		var got struct {
			Metadata struct{ Continue string }
			Items    []T
		}
		if err := json.Unmarshal(data, &got); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, got.Items...)
		if got.Metadata.Continue == "" {
			return all, nil
		}
		query.Set("continue", got.Metadata.Continue)
	}
}
