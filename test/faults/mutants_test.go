package faults

import (
	"context"
	"fmt"
	"os"

	"github.com/taintlet/taintlet/test/process"
)

// mutantEnv names the mutant that runs in place of the agent, to see that the suite finds it.
const mutantEnv = "TAINTLET_FAULT_MUTANT"

// decider is the folder of what decides.
const decider = "agent/decide/"

// mutants are agents that are wrong in one place each.
func mutants() map[string]process.Swap {
	const client, writer = "taints/apiserver/client.go", "agent/node/writer.go"
	return map[string]process.Swap{
		"record after the taint": {
			File: client, Old: "specPatch(node, next, desired.Annotations))\n",
			New: "specPatch(node, next, nil))\n" +
				"\t\tif err == nil {\n\t\t\tpatched, err = c.patch(ctx, types.MergePatchType, specPatch(patched, next, desired.Annotations))\n\t\t}\n",
		},
		"no version in the patch":       {File: client, Old: `"metadata": map[string]any{"resourceVersion": node.ResourceVersion, "annotations": values}`, New: `"metadata": map[string]any{"annotations": values}`},
		"no look at the Node after 409": {File: client, Old: "if !desired.StillFits(base, node) {", New: "if base.UID != node.UID {"},
		"removes by key": {
			File: "taints/plan.go", Old: "if !slices.Contains(owned, pair) {\n",
			New: "if !slices.ContainsFunc(owned, func(p Pair) bool { return p.Key == pair.Key }) {\n",
		},
		"slot not awaited":             {File: decider + "gate.go", Old: "t.in.Slot != SlotHeld && r.adds(t)", New: "false"},
		"no dwell before an eviction":  {File: decider + "latch.go", Old: "d.class == critical && d.held >= c.CriticalAfter.Duration", New: "d.class == critical"},
		"clears at once":               {File: decider + "latch.go", Old: "d.isClearing() && d.held >= d.ClearAfter(c)", New: "d.isClearing()"},
		"no Event before an eviction":  {File: writer, Old: "if w.announced[a] {", New: "if true {"},
		"retries without a pause":      {File: writer, Old: "pause := t.retry.After(err, j.isUrgent())", New: "pause := time.Duration(0)"},
		"gives up after an error":      {File: writer, Old: "if err == nil || errors.Is(err, apiserver.ErrOvertaken) {", New: "if true {"},
		"forgets the record at starts": {File: decider + "record.go", Old: "r := node.record\n", New: "r := record{}\n"},
		"what cannot be read is good":  {File: decider + "latch.go", Old: "case o.Level == probes.OK:\n", New: "case o.Level == probes.OK, o.Level == probes.Unknown:\n"},
	}
}

// buildAgent builds the agent with a clock that can be stepped, and as the mutant that the
// environment names.
func buildAgent(ctx context.Context, folder string, options process.BuildOptions) (path string, err error) {
	swaps, err := steppedClock(ctx)
	if err != nil {
		return "", err
	}
	if name := os.Getenv(mutantEnv); name != "" {
		mutant, found := mutants()[name]
		if !found {
			return "", fmt.Errorf("no such mutant: %s", name)
		}
		swaps = append(swaps, mutant)
	}
	if options.Overlay, err = process.Overlay("../..", folder, swaps...); err != nil {
		return "", err
	}
	return process.BuildAgent(ctx, folder, options)
}
