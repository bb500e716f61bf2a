package dnspods

import "testing"

func TestParse(t *testing.T) {
	for _, good := range []string{Default().String(), "a/b in (c, d),e!=f"} {
		if got, err := Parse(good); err != nil || got.String() != good {
			t.Errorf("%s: %s, %v", good, got, err)
		}
	}
	for text, want := range map[string]string{
		"":              `"": must be namespace/selector, such as kube-system/k8s-app=kube-dns`,
		"kube-dns":      `"kube-dns": must be namespace/selector, such as kube-system/k8s-app=kube-dns`,
		"Kube/a=b":      `"Kube/a=b": must be namespace/selector, such as kube-system/k8s-app=kube-dns`,
		"kube-system/":  `"kube-system/": "" must be a label selector, such as k8s-app=kube-dns`,
		"kube-system/=": `"kube-system/=": "=" must be a label selector, such as k8s-app=kube-dns`,
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
