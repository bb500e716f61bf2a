package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// Whatever a configuration file holds, or is, it costs little to refuse, and the
// message is short and says what is wrong.
func TestHostileFiles(t *testing.T) {
	const rule = "- {condition: MemoryPressure, level: Degraded, taint: {key: k%d, effect: NoSchedule}}\n"
	var rules strings.Builder
	for i := range 700 {
		fmt.Fprintf(&rules, rule, i)
	}
	aliases := "bomb: &a " + strings.Repeat("x", 20_000) + "\nrules: [" + strings.Repeat("*a,", 10_000) + "]\n"
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"many rules":              {header + "rules:\n" + rules.String(), "rules: Too many: 700: must have at most 24 items"},
		"many paths":              {header + "disk: {paths: [" + strings.Repeat("/a,", 5000) + "]}\n", "disk.paths: Too many"},
		"a long path":             {header + "disk: {paths: [/" + strings.Repeat("a", 5000) + "]}\n", "at most 4096 bytes"},
		"a long value":            {header + "rules:\n- {condition: " + strings.Repeat("C", 60_000) + ", level: Degraded, taint: {key: a, effect: NoSchedule}}\n", "rules[0].condition"},
		"a long field":            {header + "memory: {" + strings.Repeat("f", 1000) + ": 1}\n", "unknown field"},
		"many fields":             {header + "memory: {" + manyFields(4000) + "}\n", "unknown field"},
		"aliases":                 {header + aliases, "line 3: YAML anchors and aliases"},
		"a merge key":             {header + "memory: &m {availablePercent: 7}\ndisk: {<<: *m}\n", "anchors and aliases"},
		"deeply nested":           {header + "memory: " + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + "\n", "not YAML"},
		"behind an open quote":    {header + "disk: {paths: [\"/a\n \", *a]}\n", "line 3: YAML anchors and aliases"},
		"behind an escaped quote": {header + "disk: {paths: [\"/\\\", \", *a, \"/b\"]}\n", "line 3: YAML anchors and aliases"},
		"a second document":       {header + "---\nmemory: {availablePercent: 50}\n", "only one YAML document"},
		"after the end":           {header + "...\nmemory: {availablePercent: 50}\n", "only one YAML document"},
		"more than any number":    {header + "memory: {availableBytes: 1e19}\n", "memory.availableBytes"},
		"more than an exbibyte":   {header + "memory: {availableBytes: 1025Pi}\n", "must be 0 to 1Ei"},
		"a long file":             {header + "# " + strings.Repeat("x", 64<<10), "longer than 65536 bytes"},
		"ten megabytes":           {header + "heartbeat: \"" + strings.Repeat("x", 10<<20) + "\"\n", "longer than 65536 bytes"},
		"binary":                  {string([]byte{0, 1, 254, 255}), "not YAML"},
		"a duration without unit": {header + "heartbeat: 5\n", "heartbeat"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			refuse(t, file, c.want)
		})
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "f%d: 1, ", i)
	}
	return b.String()
}

// What is no regular file is not waited for.
func TestWhatIsNoFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, "/dev/zero", "/dev/null", t.TempDir()} {
		refuse(t, path, "not a regular file")
	}
}

// refuse checks that a file is refused with a short message, for little memory.
func refuse(t *testing.T, file, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := config.HostSchema().Load(file)
	runtime.ReadMemStats(&after)
	switch {
	case err == nil:
		t.Fatalf("%s is accepted", file)
	case !strings.Contains(err.Error(), want):
		t.Errorf("message lacks %q: %.500v", want, err)
	case len(err.Error()) > 3<<10:
		t.Errorf("a message of %d bytes: %.300v", len(err.Error()), err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%s took %d MiB to refuse", file, used>>20)
	}
}

// What looks like an anchor inside of quotes, words and comments is none; a
// document's beginning may be marked.
func TestHarmlessYAML(t *testing.T) {
	for name, text := range map[string]string{
		"marked":      "# a head\n---\n" + header,
		"a comment":   "# *a &b\n" + header + "heartbeat: 5m # &c\n",
		"quotes":      header + "disk: {paths: [\"/a *b\", '/c &d']}\n",
		"in a word":   header + "disk: {paths: [/a*b, /c&d]}\n",
		"a directive": "%YAML 1.1\n---\n" + header,
		"line ends":   strings.ReplaceAll(header+"heartbeat: 5m\n", "\n", "\r\n"),
	} {
		if _, err := config.HostSchema().Decode([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
