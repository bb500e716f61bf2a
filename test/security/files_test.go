package security

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	loader "github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

func fileAttacks() []attack {
	return []attack{
		{name: "configuration files at the start", guarded: true, what: "an agent is started with each of the hostile files", run: startWithFiles},
		{name: "configuration files while running", guarded: true, what: "hostile files take the place of the one in force", run: replaceFiles},
	}
}

const (
	// maxText is how long the message about a file may be, in bytes.
	maxText = 4 << 10
	// maxStart is how long an agent may take to refuse a file, on a busy machine.
	maxStart = 5 * time.Second
)

// startWithFiles starts an agent with each file; it has to refuse and end.
func startWithFiles(t *testing.T, c *scene) (attempts, denied int) {
	var n count
	for name, write := range hostileFiles() {
		path := filepath.Join(t.TempDir(), "config.yaml")
		write(t, path)
		var output bytes.Buffer
		command := c.command(t, "--dry-run=client", "--listen=", "--node-name=none", "--config="+path)
		command.Stdout, command.Stderr = &output, &output
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*maxStart)
		memory, err := process.RunMeasured(ctx, command)
		took := time.Since(begin)
		cancel()
		exit, isExit := errors.AsType[*exec.ExitError](err)
		refused := isExit && exit.ExitCode() == 2
		n.add(refused)
		c.peak.note(memory)
		if !refused || output.Len() > maxText || took > maxStart {
			t.Errorf("%s: %v after %s, a message of %d bytes: %.300s", name, err, took, output.Len(), &output)
		}
	}
	return n.attempts, n.denied
}

// replaceFiles gives running agents one file after the other: the attacked one, and
// in the long form some more, which need no API server, so that each file has its
// turn.
func replaceFiles(t *testing.T, c *scene) (attempts, denied int) {
	files := hostileFiles()
	names := slices.Sorted(maps.Keys(files))
	type victim struct {
		*bed.Agent
		config string
	}
	victims := []victim{{c.attacked, c.config}}
	if isLong() {
		for range 9 {
			config := configFile(t, configuration)
			victims = append(victims, victim{c.start(t, "none", config, nil), config})
		}
	} else {
		names = []string{"a FIFO"}
	}
	var group sync.WaitGroup
	counts := make([]count, len(victims))
	for i, v := range victims {
		group.Go(func() {
			told := map[string]bool{}
			for j := i; j < len(names); j += len(victims) {
				why := reasonAgainst(t, v.config, files[names[j]])
				if told[why] { // its line is logged once a minute, so only the metric says that it is refused again
					restore(t, v.Agent, v.config)
				}
				counts[i].add(isRefused(t, v.Agent, v.config, names[j], files[names[j]], !told[why]))
				told[why] = true
			}
			restore(t, v.Agent, v.config)
			if i > 0 {
				memory, err := process.Memory(v.Process.PID(), "VmHWM")
				if err != nil {
					t.Error(err)
				}
				c.peak.note(memory)
			}
		})
	}
	group.Wait()
	var n count
	for _, one := range counts {
		n.attempts, n.denied = n.attempts+one.attempts, n.denied+one.denied
	}
	return n.attempts, n.denied
}

// reasonAgainst is why a file is refused, if it stood in that place.
func reasonAgainst(t *testing.T, config string, write func(*testing.T, string)) string {
	path := filepath.Join(filepath.Dir(config), "next", filepath.Base(config))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Error(err)
	}
	write(t, path)
	defer os.Remove(path) //nolint:errcheck // the next write tells
	_, err := loader.HostSchema().Load(path)
	if err == nil {
		t.Errorf("%s is accepted", path)
		return ""
	}
	return err.Error()
}

// isRefused puts a hostile file in place of the agent's and reports whether it
// stayed with what it had and said so once, or not at all where that is no news.
func isRefused(t *testing.T, a *bed.Agent, config, name string, write func(*testing.T, string), isNews bool) bool {
	const refused, metric = `msg="configuration refused; the earlier one stays in force"`, "taintlet_config_refused"
	before := strings.Count(a.Output.String(), refused)
	lines := func() int { return strings.Count(a.Output.String(), refused) - before }
	write(t, config+".new")
	if err := os.Rename(config+".new", config); err != nil {
		t.Errorf("%s: %v", name, err)
		return false
	}
	cluster.Eventually(t, "a refusal of "+name, func() error {
		if a.Metric(metric) == 0 || isNews && lines() == 0 {
			return errors.New("none")
		}
		return nil
	})
	if now := lines(); now > 1 {
		t.Errorf("%s: %d messages", name, now)
		return false
	}
	return true
}

// restore gives the agent its good file again. That it is in force is seen by the
// metric, and that it never was out of force by the hash in the log.
func restore(t *testing.T, a *bed.Agent, config string) {
	if err := os.WriteFile(config+".new", []byte(bed.ConfigHeader+configuration), 0o600); err != nil {
		t.Error(err)
		return
	}
	if err := os.Rename(config+".new", config); err != nil {
		t.Error(err)
		return
	}
	if isLong() {
		a.WaitMetric("taintlet_config_refused 0")
	}
}

// note takes in the memory of another process.
func (k *peak) note(memory int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rss = max(k.rss, memory)
}

// hostileFiles are ways to make a file that no agent may take, by name.
func hostileFiles() map[string]func(t *testing.T, path string) {
	files := map[string]func(*testing.T, string){
		"a FIFO": func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Error(err)
			}
		},
		"a directory": func(t *testing.T, path string) {
			if err := os.Symlink(t.TempDir(), path); err != nil { // a file cannot replace a directory
				t.Error(err)
			}
		},
	}
	for _, target := range []string{"/dev/zero", "/dev/null", "/dev/full", "/nonexistent", "config.yaml"} {
		files["a link to "+target] = func(t *testing.T, path string) {
			if err := os.Symlink(target, path); err != nil {
				t.Error(err)
			}
		}
	}
	for name, text := range hostileTexts() {
		files[name] = func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	return files
}

// hostileTexts are the contents of hostile files.
func hostileTexts() map[string]string {
	texts := map[string]string{
		"nothing":            "",
		"spaces":             strings.Repeat(" ", 60_000),
		"NUL bytes":          strings.Repeat("\x00", 1000),
		"bytes":              "\xff\xfe\x00\x01",
		"a NUL in a key":     bed.ConfigHeader + "mem\x00ory: {}\n",
		"no version":         "kind: TaintletConfiguration\n",
		"another version":    "apiVersion: taintlet.dev/v9\nkind: TaintletConfiguration\n",
		"another kind":       "apiVersion: v1\nkind: ConfigMap\n",
		"a list":             "[]\n",
		"a word":             "taintlet\n",
		"a number":           "42\n",
		"null":               "null\n",
		"a long JSON number": bed.ConfigHeader + "memory: {availablePercent: " + strings.Repeat("9", 60_000) + "}\n",
	}
	for name, part := range map[string]string{
		"thousands of rules":            "rules:\n" + strings.Repeat("- {condition: MemoryPressure, level: Degraded, taint: {key: a, effect: NoSchedule}}\n", 700),
		"a list of ten megabytes":       "disk: {paths: [" + strings.Repeat("/a,", 10<<20/3) + "]}\n",
		"ten megabytes in one string":   "heartbeat: \"" + strings.Repeat("x", 10<<20) + "\"\n",
		"ten megabytes of comment":      "#" + strings.Repeat("x", 10<<20) + "\n",
		"as many paths as fit":          "disk: {paths: [" + strings.Repeat("/a,", 20_000) + "]}\n",
		"as many unknown fields":        "memory: {" + strings.Repeat("x: 1, ", 9000) + "}\n",
		"an unknown field":              "memory: {availablePercentage: 5}\n",
		"an unknown section":            "cpu: {}\n",
		"a field twice":                 "heartbeat: 5m\nheartbeat: 6m\n",
		"a section twice":               "memory: {}\nmemory: {}\n",
		"laughs":                        laughs(),
		"an alias":                      "memory: &a {}\ndisk: *a\n",
		"a merge key":                   "memory: &a {}\ndisk: {<<: *a}\n",
		"a second document":             "---\nmemory: {availablePercent: 50}\n",
		"a document after the end":      "...\nmemory: {availablePercent: 50}\n",
		"nested lists":                  "memory: " + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + "\n",
		"nested objects":                "memory: " + strings.Repeat("{a: ", 12_000) + strings.Repeat("}", 12_000) + "\n",
		"nested blocks":                 nestedBlocks(300),
		"a tag":                         "memory: !!python/object/apply:os.system [\"true\"]\n",
		"a binary tag":                  "heartbeat: !!binary AAAA\n",
		"an amount of 1e19":             "memory: {availableBytes: 1e19}\n",
		"an amount of 9e999":            "memory: {availableBytes: 9e999}\n",
		"a negative amount":             "memory: {availableBytes: -1}\n",
		"a percentage of 1e308":         "memory: {availablePercent: 1e308}\n",
		"a percentage that is none":     "memory: {availablePercent: .nan}\n",
		"an infinite percentage":        "memory: {availablePercent: .inf}\n",
		"a negative percentage":         "memory: {availablePercent: -5}\n",
		"a duration of 1e300 hours":     "heartbeat: 1" + strings.Repeat("0", 300) + "h\n",
		"a period of a nanosecond":      "memory: {period: 1ns}\n",
		"a negative period":             "memory: {period: -1s}\n",
		"no budget":                     "writeBudget: {interval: 0s}\n",
		"a budget without end":          "writeBudget: {interval: 1000000h}\n",
		"slots without end":             "eviction: {slots: 1000000000}\n",
		"a window without end":          "memory: {debounce: {samples: 1000000000, badSamples: 1}}\n",
		"a window of -1":                "memory: {debounce: {samples: -1}}\n",
		"a samples number of 1e30":      "memory: {debounce: {samples: 1" + strings.Repeat("0", 30) + "}}\n",
		"a relative path":               "disk: {paths: [../../etc]}\n",
		"a path of 50,000 bytes":        "disk: {paths: [/" + strings.Repeat("a", 50_000) + "]}\n",
		"a key of the control plane":    "rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: node.kubernetes.io/not-ready, effect: NoSchedule}}\n",
		"a key of 60,000 bytes":         "rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: " + strings.Repeat("k", 60_000) + ", effect: NoSchedule}}\n",
		"eviction without a bound":      "rules:\n- {condition: MemoryPressure, level: Critical, taint: {key: a, effect: NoExecute}}\n",
		"an unknown condition":          "rules:\n- {condition: " + strings.Repeat("C", 50_000) + ", level: Degraded, taint: {key: a, effect: NoSchedule}}\n",
		"a prefix of the control":       "keyPrefix: node.kubernetes.io\n",
		"a string instead of an object": "memory: \"5\"\n",
		"a tab":                         "memory:\n\tavailablePercent: 5\n",
	} {
		texts[name] = bed.ConfigHeader + part
	}
	return texts
}

// laughs is the billion laughs: each name stands for ten of the one before.
func laughs() string {
	text := "a0: &a0 ha\n"
	for i := range 20 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 10))
	}
	return text
}

func nestedBlocks(depth int) string {
	text := "memory:\n"
	for i := range depth {
		text += strings.Repeat(" ", i+1) + "a:\n"
	}
	return text
}
