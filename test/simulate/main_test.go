package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsageErrors(t *testing.T) {
	unknownField := write(t, "bad.yaml", "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nmemroy: {}\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":         {nil, `--synthetic "": must be one of quiet, spike`},
		"flag":            {[]string{"--nope"}, "unknown flag: --nope"},
		"argument":        {[]string{"--synthetic=quiet", "more"}, `unexpected argument "more"`},
		"generator":       {[]string{"--synthetic=calm"}, `--synthetic "calm": must be one of quiet, spike`},
		"condition":       {[]string{"--synthetic=quiet", "--condition=Memory"}, `--condition "Memory": must be one of MemoryPressure`},
		"no condition":    {[]string{"--synthetic=quiet", "--condition="}, "--condition: needs at least one"},
		"condition mixed": {[]string{"--synthetic=mixed", "--condition=PIDPressure"}, "--condition: does not go with mixed"},
		"duration":        {[]string{"--synthetic=quiet", "--duration=0s"}, "--duration 0s: must be 1s to"},
		"duty":            {[]string{"--synthetic=flap", "--flap-duty=1"}, "--flap-duty 1: must be more than 0"},
		"period":          {[]string{"--synthetic=flap", "--flap-period=1ms"}, "--flap-period 1ms: must be 1s to"},
		"output":          {[]string{"--synthetic=quiet", "-o=xml"}, `--output "xml": must be table or json`},
		"configuration":   {[]string{"--synthetic=quiet", "--config", unknownField}, "memroy"},
		"several at once": {[]string{"--synthetic=quiet", "-o=xml", "--duration=0s"}, "--duration 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, err strings.Builder
			if code := run(c.args, &out, &err); code != exitUsage {
				t.Errorf("exit %d, want %d", code, exitUsage)
			}
			if !strings.Contains(err.String(), c.want) || out.String() != "" {
				t.Errorf("said %q and %q, want %q", err.String(), out.String(), c.want)
			}
		})
	}
}

func TestHelpDefinesEveryColumn(t *testing.T) {
	var help, table, err strings.Builder
	if code := run([]string{"--help"}, &help, &err); code != exitOK {
		t.Fatalf("exit %d: %s", code, err.String())
	}
	if code := run([]string{"--synthetic=quiet", "--duration=1h"}, &table, &err); code != exitOK {
		t.Fatalf("exit %d: %s", code, err.String())
	}
	header := strings.Split(table.String(), "\n")[2]
	for _, column := range strings.Fields(header)[2:] {
		if column != "max" && !strings.Contains(help.String(), "\n  "+column+" ") {
			t.Errorf("--help does not tell what %q is", column)
		}
	}
	for _, name := range generatorNames() {
		if !strings.Contains(help.String(), "\n  "+name+" ") {
			t.Errorf("--help does not tell what %q is", name)
		}
	}
}

func TestTable(t *testing.T) {
	twice := []string{"--synthetic=flap", "--flap-period=12h", "--flap-duty=0.013888"}
	var out, errs strings.Builder
	if code := run(append(twice, "--follow-up=false"), &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	for _, want := range []string{
		"flap, 24h\n",
		"MemoryPressure  taintlet        3  0.1       2   21m53s  1.5 %   2/2  1.96s  1.96s   3.92s     2m\n",
		"MemoryPressure  kubelet         3  0.1       2   24m40s  1.7 %   2/2  6.96s  6.96s   13.9s  4m57s\n",
		"All: taintlet 3 changes, at most 2 within an hour.\n",
		"Node writes of taintlet: 3 (taints and record)",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\nis without %q", out.String(), want)
		}
	}
	if hint := "Samples: once a period only"; !strings.Contains(out.String(), hint) {
		t.Errorf("%s\nis without %q", out.String(), hint)
	}
	out.Reset()
	if code := run(twice, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	if want := "610ms  1.06s   1.22s  2m0.1s\n"; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "Samples:") {
		t.Errorf("%s\nis no table with follow-ups", out.String())
	}
}

func TestJSON(t *testing.T) {
	cfg := write(t, "taintlet.yaml", "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\nmemory: {debounce: {clearAfter: 5m, maxClearAfter: 5m}}\nwriteBudget: {interval: 1s}\n")
	var out, errs strings.Builder
	if code := run([]string{"--synthetic=adversary", "--duration=1h", "--follow-up=false", "--config", cfg, "-o=json"}, &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var got struct {
		DurationSeconds float64
		Conditions      []struct {
			Condition, Rule    string
			Changes            int
			DelayMedianSeconds *float64
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.DurationSeconds != 3600 || len(got.Conditions) != 2 {
		t.Fatalf("%+v", got)
	}
	ours := got.Conditions[0]
	if ours.Rule != ruleTaintlet || ours.Changes < 22 || ours.Changes > 24 || ours.DelayMedianSeconds == nil || *ours.DelayMedianSeconds != 1 {
		t.Errorf("%+v, want about 24 changes by taintlet, each seen within 1 s", ours)
	}
}
