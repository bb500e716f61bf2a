package taints

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzPair checks that a pair of the record is refused, or is written as it was read.
func FuzzPair(f *testing.F) {
	for _, text := range []string{"node.kubernetes.io/memory-pressure:NoSchedule", "a:b:c", ":NoExecute", "a", "a:", "\x00:\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var pair Pair
		if pair.UnmarshalText(text) != nil {
			if pair != (Pair{}) {
				t.Errorf("a refused pair is %+v", pair)
			}
			return
		}
		if written, err := pair.MarshalText(); err != nil || string(written) != string(text) || pair.Key == "" {
			t.Errorf("%q is %+v and is written as %q, %v", text, pair, written, err)
		}
	})
}

// FuzzHeldKeys checks that the held annotation names no more keys than it has words, and no
// key that is not in it.
func FuzzHeldKeys(f *testing.F) {
	for _, text := range []string{"", "a,b", ",,", "node.kubernetes.io/memory-pressure", strings.Repeat("a,", 1000), "\x00,\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys := HeldKeys(&Node{Annotations: map[string]string{HeldAnnotation: text}})
		if strings.Join(keys, ",") != text {
			t.Errorf("%q lists %q", text, keys)
		}
	})
}

// FuzzMessage checks that the admission policies let every message pass, and that it begins
// as it was given.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{"", strings.Repeat("a", 2000), strings.Repeat("a", 2001), strings.Repeat("ä", 1500), strings.Repeat("\xff", 3000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const allowed = 2048 // bytes, in the policies
		message := Message(text)
		if len(message) > allowed || utf8.ValidString(text) && !utf8.ValidString(message) {
			t.Errorf("a message of %d bytes has become %d bytes: %q", len(text), len(message), message)
		}
		if begin, isCut := strings.CutSuffix(message, "…"); utf8.ValidString(text) && !strings.HasPrefix(text, begin) && isCut {
			t.Errorf("%q has become %q", text, message)
		}
	})
}
