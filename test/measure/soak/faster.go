package soak

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/taintlet/taintlet/test/process"
)

// pace is how many times as often as by default an accelerated agent does things: a
// week then takes 14 minutes.
const pace = 720

// swap replaces a text of the one source file that has it, wherever the file has it. How
// many spaces align the text there does not matter.
type swap struct{ old, new string }

func (s swap) pattern() *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(s.old), " ", " +"))
}

// periods are constants that say how often something is done, or for how long
// something is remembered. What bounds the patience with others stays as it is:
// others are not faster.
func periods() []swap {
	var all []swap
	for _, p := range []string{
		"MinInterval: 250 * time.Millisecond",
		"FollowUp: 100 * time.Millisecond",
		"rereadEvery = 10 * time.Second",
		"jitterPerSlice = 10 * time.Second",
		"levelEventsEvery = time.Minute",
		"joinWithin = 250 * time.Millisecond",
		"contestWithin = time.Minute",
		"removalsFor = 24 * time.Hour",
		"cautiousFor = 5 * time.Minute",
		"flapsFor = time.Hour",
		"refreshEvery = 10 * time.Minute",
		"refreshSoonest = 30 * time.Second",
		"mountsEvery = 5 * time.Second",
		"mountsSeldom = 30 * time.Second",
		"healthyAgainAfter = 2 * time.Minute",
		"lossWindow = 30 * time.Second",
		"apiEvery = 59 * time.Second",
		"distrust = time.Minute",
		"eventEvery = 5 * time.Minute",
	} {
		all = append(all, swap{p, fmt.Sprintf("%s / %d", p, pace)})
	}
	return append(all,
		swap{"n.MinInterval, n.FollowUp = time.Second, time.Second", fmt.Sprintf("n.MinInterval, n.FollowUp = time.Second / %[1]d, time.Second / %[1]d", pace)},
		swap{"PenaltyHalfLife: decide.Duration{Duration: time.Hour", fmt.Sprintf("PenaltyHalfLife: decide.Duration{Duration: time.Hour / %d", pace)},
		swap{"UnknownAfter: decide.Duration{Duration: 5 * time.Minute", fmt.Sprintf("UnknownAfter: decide.Duration{Duration: 5 * time.Minute / %d", pace)},
		swap{"ClientRate = 10", fmt.Sprintf("ClientRate = 10 * %d", pace)},
		// It is the patience of a request too.
		swap{"tryEvery = 10 * time.Second", "tryEvery = time.Second"})
}

// bounds are what the configuration's validation and client-go do not let be short.
func bounds() []swap {
	return []swap{
		{`json:"heartbeat" range:"0,1m..8h"`, `json:"heartbeat" range:"0,1ms..8h"`},
		{`json:"interval" range:"1s..24h"`, `json:"interval" range:"1ms..24h"`},
		// client-go asks for a watch of 5 to 10 minutes, and the API server ends it then.
		{"options.Watch = true", "options.Watch, options.TimeoutSeconds = true, new(int64(1))"},
	}
}

// oneHost lets agents at several ports of this host be peers.
func oneHost() []swap {
	return []swap{
		{"ports: []uint16{o.Listen.Port()}, own", "own"},
		{"taken[e.address.Addr()] {", "false {"},
		{"return ok && own.", "return false && ok && own."},
	}
}

// manyAnswers lets a peer answer an agent that asks as often as an accelerated one. What a
// peer refuses takes half a second.
func manyAnswers() swap {
	return swap{
		"answers{toSource: 20, toBlock: 60, toAgents: 300, toOthers: 200}",
		fmt.Sprintf("answers{toSource: 20 * %[1]d, toBlock: 60 * %[1]d, toAgents: 300 * %[1]d, toOthers: 200 * %[1]d}", pace),
	}
}

// leaks are mistakes that the soak has to find.
func leaks() map[string]swap {
	return map[string]swap{
		"memory": {
			"func (r *runner) observe(ctx context.Context) probes.Observation {",
			"var leaked [][]byte\n\nfunc (r *runner) observe(ctx context.Context) probes.Observation {\n\tleaked = append(leaked, make([]byte, 64))",
		},
		"goroutines": {
			"func answer(w http.ResponseWriter, err error) {",
			"func answer(w http.ResponseWriter, err error) {\n\tgo func() { select {} }()",
		},
		"descriptors": {
			"l.open = append(l.open, c)\n",
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
	overlay, err := process.OverlayOf(module, folder, sources)
	if err != nil {
		return "", err
	}
	return process.BuildAgent(ctx, folder, process.BuildOptions{Release: true, Overlay: overlay})
}

// swapped returns the files with their texts replaced, by their paths in the module. A
// text that no file has, or more than one, is an error: the source has changed.
func swapped(module string, swaps []swap) (map[string]string, error) {
	files, err := sources(module)
	if err != nil {
		return nil, err
	}
	changed := map[string]string{}
	for _, s := range swaps {
		var found []string
		for file, text := range files {
			if s.pattern().MatchString(text) {
				found = append(found, file)
			}
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("%q is in %v and not in one file: say in test/measure/soak/faster.go what became of it", s.old, found)
		}
		file := found[0]
		files[file] = s.pattern().ReplaceAllLiteralString(files[file], s.new)
		changed[file] = files[file]
	}
	return changed, nil
}

// sources returns the files of the product, by their paths in the module.
func sources(module string) (map[string]string, error) {
	files := map[string]string{}
	for _, folder := range []string{"agent", "cmd", "probes", "taints"} {
		err := filepath.WalkDir(filepath.Join(module, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // a source file
			if err != nil {
				return err
			}
			name, err := filepath.Rel(module, path)
			files[name] = string(text)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
