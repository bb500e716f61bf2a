package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/taintlet/taintlet/test/process"
)

// pace is how many times as often as by default an accelerated agent does things: a
// week then takes 14 minutes.
const pace = 720

// swap replaces a text of a source file, wherever the file has it. How many spaces
// align the text there does not matter.
type swap struct{ file, old, new string }

func (s swap) pattern() *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(s.old), " ", " +"))
}

// periods are constants that say how often something is done, or for how long
// something is remembered. What bounds the patience with others stays as it is:
// others are not faster.
func periods() []swap {
	var all []swap
	for _, p := range [][2]string{
		{"agent/config/schema.go", "return 250 * time.Millisecond"},
		{"agent/config/schema.go", "return 100 * time.Millisecond"},
		{"agent/config/network.go", "{ return time.Second"},
		{"agent/reload.go", "rereadEvery = 10 * time.Second"},
		{"agent/reload.go", "jitterPerSlice = 10 * time.Second"},
		{"agent/levelevents.go", "levelEventsEvery = time.Minute"},
		{"agent/writer.go", "joinWithin = 250 * time.Millisecond"},
		{"agent/decide/dispute.go", "contestWithin = time.Minute"},
		{"agent/decide/dispute.go", "contestFor = 24 * time.Hour"},
		{"agent/decide/brake.go", "cautiousFor = 5 * time.Minute"},
		{"agent/decide/told.go", "flapsFor = time.Hour"},
		{"agent/fleet/fleet.go", "refreshEvery = 10 * time.Minute"},
		{"agent/fleet/fleet.go", "refreshSoonest = 30 * time.Second"},
		{"probes/disk/mountreader_linux.go", "mountsEvery = 5 * time.Second"},
		{"probes/disk/mountreader_linux.go", "mountsSeldom = 30 * time.Second"},
		{"probes/disk/health.go", "healthyAgainAfter = 2 * time.Minute"},
		{"probes/network/verdict/loss.go", "lossWindow = time.Minute"},
		{"probes/network/run.go", "apiEvery = 59 * time.Second"},
		{"probes/cgroup/pods.go", "lookAgain = time.Minute"},
		{"taints/apiserver/connection.go", "distrust = time.Minute"},
		{"taints/apiserver/recorder.go", "eventEvery = 5 * time.Minute"},
	} {
		all = append(all, swap{p[0], p[1], fmt.Sprintf("%s / %d", p[1], pace)})
	}
	return append(all,
		swap{"agent/assembly/connect.go", "ClientRate = 10", fmt.Sprintf("ClientRate = 10 * %d", pace)},
		// It is the patience of a request too.
		swap{"agent/slots.go", "slotEvery = 10 * time.Second", "slotEvery = time.Second"})
}

// bounds are what the configuration's validation and client-go do not let be short.
func bounds() []swap {
	return []swap{
		{"agent/config/validate.go", "minHeartbeat = time.Minute", "minHeartbeat = time.Millisecond"},
		{"agent/config/validate.go", "between(d.PenaltyHalfLife, time.Minute", "between(d.PenaltyHalfLife, time.Millisecond"},
		{"agent/config/validate.go", "between(d.UnknownAfter, time.Minute", "between(d.UnknownAfter, time.Millisecond"},
		{"agent/config/validate.go", "between(w.Interval, time.Second", "between(w.Interval, time.Millisecond"},
		{"agent/config/disk.go", "between(w.Interval, time.Second", "between(w.Interval, time.Millisecond"},
		// client-go asks for a watch of 5 to 10 minutes, and the API server ends it then.
		{"taints/apiserver/watch.go", "options.Watch = true", "options.Watch, options.TimeoutSeconds = true, new(int64(1))"},
	}
}

// oneHost lets agents at several ports of this host be peers.
func oneHost() []swap {
	return []swap{
		{"agent/fleet/fleet.go", "port{agentPort, []uint16{o.Listen.Port()}}", "port{name: agentPort}"},
		{"agent/fleet/choose.go", "!taken[e.address.Addr()]", "true"},
		{"agent/fleet/address.go", "return ok && own.", "return false && ok && own."},
	}
}

// leaks are mistakes that the soak has to find.
func leaks() map[string]swap {
	return map[string]swap{
		"memory": {
			"agent/runner.go", "func (r *runner) observe(ctx context.Context) probes.Observation {",
			"var leaked [][]byte\n\nfunc (r *runner) observe(ctx context.Context) probes.Observation {\n\tleaked = append(leaked, make([]byte, 64))",
		},
		"goroutines": {
			"agent/http.go", "func answer(w http.ResponseWriter, err error) {",
			"func answer(w http.ResponseWriter, err error) {\n\tgo func() { select {} }()",
		},
		"descriptors": {
			"agent/listener.go", "l.open = append(l.open, c)\n",
			"l.open = append(l.open, c)\n\tif c.RemoteAddr().(*net.TCPAddr).Port%100 == 0 {\n\t\tunix.Dup(1)\n\t}\n",
		},
	}
}

// swappedProgram builds taintlet with the swaps in a folder of that name. No file of
// the checkout changes.
func swappedProgram(ctx context.Context, module, folder, name string, swaps []swap) (string, error) {
	sources, err := swapped(module, swaps)
	if err != nil {
		return "", err
	}
	folder = filepath.Join(folder, name)
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // the agent is another user
		return "", err
	}
	replace := map[string]string{}
	for file, text := range sources {
		path := filepath.Join(folder, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(module, file)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", err
	}
	return process.BuildAgent(ctx, folder, process.BuildOptions{Release: true, Overlay: overlay})
}

// swapped returns the files with their texts replaced. A text that is not there is
// an error: the source has changed.
func swapped(module string, swaps []swap) (map[string]string, error) {
	files := map[string]string{}
	for _, s := range swaps {
		if _, read := files[s.file]; !read {
			text, err := os.ReadFile(filepath.Join(module, s.file)) //nolint:gosec // a source file
			if err != nil {
				return nil, err
			}
			files[s.file] = string(text)
		}
		if !s.pattern().MatchString(files[s.file]) {
			return nil, fmt.Errorf("%s has no %q: say in test/measure/soak/faster.go what became of it", s.file, s.old)
		}
		files[s.file] = s.pattern().ReplaceAllLiteralString(files[s.file], s.new)
	}
	return files, nil
}
