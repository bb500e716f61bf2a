package faults

import (
	"maps"
	"sync"
)

// reached counts the faults that befell a request, by name and kind.
var reached = points{count: map[string]int{}}

type points struct {
	mu    sync.Mutex
	count map[string]int
}

func (p *points) add(from *proxy) {
	from.mu.Lock()
	counted := maps.Clone(from.reached)
	from.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, count := range counted {
		p.count[name] += count
	}
}
