package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/process"
)

// What the host's files say when it is well, and when it is not.
const (
	wellMemory, badMemory            = 50, 2 // percent available
	wellTasks, badTasks, noTasksLeft = 100, 30_000, 32_000
	// interval is the least time between two evictions, at the pace of this run.
	evictionInterval = 3600 * time.Second / pace
)

// hostIncidents befall the host and its Node, one after another.
func (w *week) hostIncidents() []incident {
	all := []incident{
		{kind: "memory is short", perDay: 6, play: func(ctx context.Context) error {
			return w.sickness(ctx, w.memory(badMemory), w.memory(wellMemory), nil)
		}},
		{kind: "PIDs are short", perDay: 4, play: func(ctx context.Context) error { return w.sickness(ctx, w.tasks(badTasks), w.tasks(wellTasks), nil) }},
		{kind: "the uplink has no carrier", perDay: 2, play: func(ctx context.Context) error { return w.sickness(ctx, w.carrier(false), w.carrier(true), nil) }},
		{kind: "memory flaps", perDay: 3, play: w.flap},
		{kind: "memory sinks slowly", perDay: 2, play: w.sink},
		{kind: "files of the host are garbled", perDay: 3, play: w.garble},
		{kind: "others remove the taint", perDay: 3, play: w.remove},
		{kind: "the record is garbled", perDay: 3, play: w.garbleRecord},
		{kind: "a person pauses taintlet", perDay: 2, play: w.pauseTaints},
		{kind: "an eviction with a slot", perDay: 2, play: w.evict},
		{kind: "the slot is another's", perDay: 1, play: w.waitForSlot},
	}
	if w.hasRoot {
		all = append(all, incident{kind: "the disk is full", perDay: 4, play: func(ctx context.Context) error {
			return w.sickness(ctx, func() error { return w.fill(true) }, func() error { return w.fill(false) }, nil)
		}})
	}
	return all
}

func (w *week) memory(percent int) func() error {
	return func() error { w.host.Memory(percent); return nil }
}

func (w *week) tasks(count int) func() error {
	return func() error { w.host.Tasks(count); return nil }
}

func (w *week) carrier(there bool) func() error {
	return func() error { w.host.Carrier(there); return nil }
}

// flap makes memory bad and well again and again, faster than the agent may follow.
func (w *week) flap(ctx context.Context) error {
	defer w.host.Memory(wellMemory)
	for range 12 {
		for _, percent := range []int{badMemory, wellMemory} {
			w.host.Memory(percent)
			if err := process.Pause(ctx, 20*time.Millisecond+time.Duration(w.hostDice.IntN(150))*time.Millisecond); err != nil {
				return err
			}
		}
	}
	w.host.Memory(wellMemory)
	return w.awaitWell(ctx)
}

// sink lets memory go down step by step.
func (w *week) sink(ctx context.Context) error {
	return w.sickness(ctx, func() error {
		for percent := wellMemory; percent > badMemory; percent -= 4 {
			w.host.Memory(percent)
			if err := process.Pause(ctx, 40*time.Millisecond); err != nil {
				return err
			}
		}
		w.host.Memory(badMemory)
		return nil
	}, w.memory(wellMemory), nil)
}

// garble makes files of the host unreadable for longer than the agent keeps it to
// itself.
func (w *week) garble(ctx context.Context) error {
	w.host.Write("proc/meminfo", "garbage\n")
	w.host.Write("proc/loadavg", "")
	err := process.Pause(ctx, time.Second)
	w.host.Memory(wellMemory)
	w.host.Tasks(wellTasks)
	if err != nil {
		return err
	}
	return w.await(ctx, "all conditions False", func(node *corev1.Node) bool { return conditionsAre(node, corev1.ConditionFalse) })
}

func conditionsAre(node *corev1.Node, status corev1.ConditionStatus) bool {
	return !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return len(c.Type) > 4 && c.Type[:4] == "Host" && c.Status != status
	})
}

// remove removes the taint twice, as another controller would. The agent may give
// way for a day; then a person has it set taints again, as its message says.
func (w *week) remove(ctx context.Context) error {
	err := w.sickness(ctx, w.memory(badMemory), w.memory(wellMemory), func() error {
		for range 2 {
			if err := w.withoutTaints(ctx); err != nil {
				return err
			}
			again, cancel := context.WithTimeout(ctx, 3*time.Second)
			_ = w.awaitTaint(again) // it may give way
			cancel()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eventually(ctx, func() error {
		for _, paused := range []bool{true, false} {
			if err := w.annotate(ctx, taints.PausedAnnotation, fmt.Sprint(paused)); err != nil {
				return err
			}
			if err := process.Pause(ctx, time.Second); err != nil {
				return err
			}
		}
		if contested := w.scraper.sum("taintlet_contested", `condition="MemoryPressure"`); contested != 0 {
			return errors.New("others still have their way")
		}
		return nil
	})
}

// withoutTaints removes all taints of taintlet's, and the annotation that keeps them.
func (w *week) withoutTaints(ctx context.Context) error {
	return eventually(ctx, func() error {
		node, err := w.node(ctx)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(node.Spec.Taints, isOwn)
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": node.ResourceVersion}, "spec": map[string]any{"taints": left}})
		if err != nil {
			return err
		}
		_, err = w.cluster.Client().CoreV1().Nodes().Patch(ctx, watchedNode, types.MergePatchType, body, patchOptions())
		return err
	})
}

// garbleRecord damages the record, in one of some ways, while the host is bad. One
// that says it is a newer release's is left alone, until somebody removes it.
func (w *week) garbleRecord(ctx context.Context) error {
	const newer = `{"version":99}`
	damages := []string{"garbage", newer, `{`, "", `{"pairs":"many"}`}
	damage := damages[w.hostDice.IntN(len(damages))]
	return w.sickness(ctx, w.memory(badMemory), w.memory(wellMemory), func() error {
		if err := w.annotate(ctx, taints.RecordAnnotation, damage); err != nil {
			return err
		}
		if damage == newer {
			err := eventually(ctx, func() error {
				_, err := process.Get(ctx, http.DefaultClient, "http://"+w.address()+"/readyz")
				switch {
				case err == nil:
					return errors.New("the agent does not leave the Node to a newer release")
				case !strings.Contains(err.Error(), "newer release"):
					return err
				}
				return nil
			})
			if err == nil {
				err = w.annotate(ctx, taints.RecordAnnotation, nil)
			}
			if err != nil {
				return err
			}
			return w.awaitReady(ctx, w.agent) // and there may be nothing to record
		}
		return w.await(ctx, "a record in place of the damaged one", func(node *corev1.Node) bool {
			record := node.Annotations[taints.RecordAnnotation]
			return record != damage && record != ""
		})
	})
}

func (w *week) annotate(ctx context.Context, key string, value any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	return w.patch(ctx, types.MergePatchType, string(body))
}

// pauseTaints pauses the agent before the host falls sick, and ends the pause.
func (w *week) pauseTaints(ctx context.Context) error {
	defer w.host.Memory(wellMemory)
	if err := w.annotate(ctx, taints.PausedAnnotation, "true"); err != nil {
		return err
	}
	w.host.Memory(badMemory)
	if err := process.Pause(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	if err := w.annotate(ctx, taints.PausedAnnotation, "false"); err != nil {
		return err
	}
	return w.sickness(ctx, w.memory(badMemory), w.memory(wellMemory), nil)
}

func evicts(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return isOwn(t) && t.Effect == corev1.TaintEffectNoExecute })
}

// evict leaves the host without PIDs until it evicts.
func (w *week) evict(ctx context.Context) error {
	return w.sickness(ctx, w.tasks(noTasksLeft), w.tasks(wellTasks), func() error {
		return w.await(ctx, "a taint that evicts", evicts)
	})
}

// waitForSlot leaves the host without PIDs while all slots are held by others.
func (w *week) waitForSlot(ctx context.Context) error {
	if err := w.holdSlots(ctx, "another"); err != nil {
		return err
	}
	err := w.sickness(ctx, w.tasks(noTasksLeft), w.tasks(wellTasks), func() error { return process.Pause(ctx, 2*evictionInterval) })
	if released := w.holdSlots(ctx, ""); err == nil {
		err = released
	}
	if err != nil {
		return fmt.Errorf("slots of another: %w", err)
	}
	return nil
}
