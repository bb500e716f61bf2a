package footprint

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// The image has program and licence, and is compressed.
func TestWeigh(t *testing.T) {
	random := make([]byte, 100_000)
	rand.NewChaCha8([32]byte{}).Read(random) //nolint:errcheck // it never fails
	write := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	licence := write("LICENSE", random[:10_000])
	for name, c := range map[string]struct {
		text        []byte
		least, most int64
	}{
		"nothing to compress": {random, 110_000, 113_000},
		"zeros":               {make([]byte, 100_000), 10_000, 12_000},
	} {
		b := built{Path: write("program", c.text)}
		if err := b.weigh(licence); err != nil {
			t.Fatal(err)
		}
		if b.Binary != 100_000 || b.Image < c.least || b.Image > c.most {
			t.Errorf("%s: %+v, want an image of %d to %d bytes", name, b, c.least, c.most)
		}
	}
	if err := (&built{Path: "nowhere"}).weigh(licence); err == nil {
		t.Error("a program that is not there has a size")
	}
}
