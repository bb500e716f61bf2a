package check

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

// FuzzKernel checks that a kernel is old only where its release says so by two numbers.
func FuzzKernel(f *testing.F) {
	for _, text := range []string{"6.1.0-13-amd64", "4.19.0", "4.20", "3", "", "4.x", "-1.-1", "99999999999999999999.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, release string) {
		if isOldKernel(release) && !strings.Contains(release, ".") {
			t.Errorf("%q is old", release)
		}
	})
}

// FuzzMinor checks that the minor version of Kubernetes is known only for Kubernetes 1.
func FuzzMinor(f *testing.F) {
	f.Add("1", "34+")
	f.Add("1", "")
	f.Add("2", "7")
	f.Add("", "+")
	f.Fuzz(func(t *testing.T, major, minor string) {
		if found := minorOf(version.Info{Major: major, Minor: minor}); found != 0 && (major != "1" || minor == "") {
			t.Errorf("%q.%q is 1.%d", major, minor, found)
		}
	})
}
