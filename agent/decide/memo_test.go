package decide_test

import (
	"strings"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints"
)

// memo keeps what is read again and again where many worlds have the same records and
// configurations. A configuration that is known is the same one again. nil keeps nothing.
type memo struct {
	nodes    map[string]*decide.Node
	statuses map[string]decide.Record
	// configs are what follows from a configuration by some words.
	configs map[configured]configured
}

type configured struct {
	cfg    *config.Config
	policy *decide.Policy
	words  string
}

// maxMemo bounds the number of records that are kept.
const maxMemo = 20_000

func newMemo() *memo {
	return &memo{map[string]*decide.Node{}, map[string]decide.Record{}, map[configured]configured{}}
}

func (m *memo) read(node *taints.Node) *decide.Node {
	if m == nil {
		return decide.Read(node)
	}
	text := node.Annotations[taints.RecordAnnotation]
	known, found := m.nodes[text]
	if !found {
		if len(m.nodes) > maxMemo {
			clear(m.nodes)
		}
		known = decide.Read(node)
		m.nodes[text] = known
	}
	twin := *known
	twin.Node = node
	return &twin
}

// status is what the record of a Node says; nothing where it cannot be read.
func (m *memo) status(node *taints.Node) decide.Record {
	if m == nil {
		s, _ := decide.ReadRecord(node) // where it cannot be read, nothing is said
		return s
	}
	text := node.Annotations[taints.RecordAnnotation]
	s, found := m.statuses[text]
	if !found {
		if len(m.statuses) > maxMemo {
			clear(m.statuses)
		}
		s, _ = decide.ReadRecord(&taints.Node{Annotations: map[string]string{taints.RecordAnnotation: text}}) // where it cannot be read, nothing is said
		m.statuses[text] = s
	}
	return s
}

func (m *memo) configuration(cfg *config.Config, words []string) (configured, bool) {
	if m == nil {
		return configured{}, false
	}
	known, found := m.configs[configured{cfg: cfg, words: strings.Join(words, " ")}]
	return known, found
}

func (m *memo) configured(before *config.Config, words []string, w *world) {
	if m != nil {
		m.configs[configured{cfg: before, words: strings.Join(words, " ")}] = configured{cfg: w.cfg, policy: w.policy}
	}
}
