package dnspods

import (
	"testing"
)

// FuzzWhere checks that the flag --dns-pods is refused, or means the same when it is
// written again.
func FuzzWhere(f *testing.F) {
	for _, text := range []string{"kube-system/k8s-app=kube-dns", "a/b in (c,d),!e", "a/", "/b=c", "a/b=c/d", "A/b", "a/b==c,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		where, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(where.String())
		if err != nil || again != where || len(where.Selectors()) == 0 || where.Namespace == "" {
			t.Errorf("%q is %+v and then %+v, %v", text, where, again, err)
		}
	})
}
