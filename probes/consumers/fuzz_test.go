package consumers

import "testing"

// FuzzShared checks that the third number of statm is read, or nothing.
func FuzzShared(f *testing.F) {
	for _, text := range []string{"", "1 2 3 4 5 6 7\n", "1 2", "1 2 -3", "1 2 9223372036854775807", "1 2 9223372036854775808", "a b 3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if pages, err := parseShared(text); err == nil && pages > 1<<63-1 {
			t.Errorf("%d pages of %q", pages, text)
		}
	})
}
