package main

import (
	"fmt"
	"math"
	"time"
)

// scenario is a fleet and what happens to it.
type scenario struct {
	name        string
	size, zones int
	lasts       time.Duration // from the start of the fault
	happens     func(*fleet)
	// least of the broken, and most of the healthy, may be accused, in percent.
	least, most float64
}

// spread is the time in which a fault reaches all of its nodes.
const spread = 30 * time.Second

// scenarios returns them all, or those that take seconds.
func scenarios(short bool) []scenario {
	size, lasts := 1000, 10*time.Minute
	if short {
		size, lasts = 200, 3*time.Minute
	}
	var all []scenario
	for _, group := range [][]scenario{broken(short), zones(), split(), blocked(), outages(), lossy(short), background(short), overlay(), holes(), small()} {
		all = append(all, group...)
	}
	for i := range all {
		s := &all[i]
		if s.size == 0 {
			s.size = size
		}
		if s.zones == 0 {
			s.zones = 1
		}
		s.lasts = max(s.lasts, lasts)
	}
	return all
}

// some calls do with a share of the nodes, each at a moment of its own.
func (f *fleet) some(percent float64, within time.Duration, do func(n *node, at time.Duration)) {
	count := int(percent*float64(len(f.nodes))/100 + 0.5)
	for _, i := range f.random.Perm(len(f.nodes))[:count] {
		do(f.nodes[i], start+time.Duration(f.random.Float64()*float64(within)))
	}
}

// broken: nodes that are cut off from all peers, here and there.
func broken(short bool) (all []scenario) {
	// Some are not accused before the fifth question: they know many broken ones.
	lasts := 20 * time.Minute
	if short {
		lasts = 12 * time.Minute
	}
	for _, zones := range []int{1, 3, 6} {
		for _, percent := range []float64{0, 1, 5, 10, 20, 30, 40} {
			if short && (zones != 3 || percent != 30 && percent != 0) {
				continue
			}
			s := scenario{
				name: fmt.Sprintf("%.0f %% of the nodes cut off at random", percent), zones: zones, lasts: lasts,
				happens: func(f *fleet) {
					f.some(percent, spread, func(n *node, at time.Duration) { n.cut, n.broken = from(at), true })
				},
				least: 99, most: 0.1,
			}
			if percent > 30 {
				s.least = 0
			}
			all = append(all, s)
		}
	}
	return all
}

// zones: one zone is cut off from the others.
func zones() (all []scenario) {
	for _, zones := range []int{2, 3, 4, 6} {
		s := scenario{
			name: fmt.Sprintf("one zone of %d cut off", zones), zones: zones,
			happens: func(f *fleet) {
				f.split = from(start)
				for _, n := range f.nodes {
					if n.zone == 0 {
						n.side, n.broken = 1, zones > 4
					}
				}
			},
		}
		if zones > 4 {
			s.least = 100
		}
		all = append(all, s)
	}
	for _, pods := range []int{2, 3} {
		all = append(all, scenario{
			name: fmt.Sprintf("a node without power, with all but one of %d DNS pods", pods),
			happens: func(f *fleet) {
				f.withDNS = []*node{f.nodes[0], f.nodes[1], f.nodes[1]}[:pods]
				f.nodes[1].dead = spans{from(start)}
			},
		})
	}
	for _, size := range []int{5, 13, 100} {
		all = append(all, scenario{
			name: fmt.Sprintf("%d of %d nodes without power, NotReady after 3 min only", size-1, size), size: size, lasts: 10 * time.Minute,
			happens: func(f *fleet) {
				f.grace = 3 * time.Minute
				for _, n := range f.nodes[1:] {
					n.dead = spans{from(start)}
				}
			},
		})
	}
	return append(all, scenario{
		name: "five zones of six without power", zones: 6,
		happens: func(f *fleet) {
			for _, n := range f.nodes {
				if n.zone != 0 {
					n.dead = spans{from(start)}
				}
			}
		},
	})
}

// split: a part of the fleet is cut off from the rest, without regard to zones.
func split() (all []scenario) {
	for _, s := range []struct {
		name    string
		percent float64
		broken  bool
		most    float64
	}{{"half cut from half", 50, false, 0.1}, {"a third cut from the rest", 33.3, false, 3}, {"a rack of 2 % cut from the rest", 2, true, 0}} {
		sc := scenario{name: s.name, most: s.most, happens: func(f *fleet) {
			f.split = from(start)
			f.some(s.percent, 0, func(n *node, _ time.Duration) { n.side, n.broken = 1, s.broken })
		}}
		if s.broken {
			sc.least = 100
		}
		all = append(all, sc)
	}
	return all
}

// blocked: taintlet's port.
func blocked() []scenario {
	return []scenario{
		{name: "port blocked on all within 30 s, second port open", happens: func(f *fleet) {
			f.some(100, spread, func(n *node, at time.Duration) { n.in = from(at) })
		}},
		{name: "port blocked on all within 2 min, second port open", happens: func(f *fleet) {
			f.some(100, 4*spread, func(n *node, at time.Duration) { n.in = from(at) })
		}},
		{name: "port blocked on all within 30 s, no second port", happens: func(f *fleet) {
			f.noSecond = true
			f.some(100, spread, func(n *node, at time.Duration) { n.in = from(at) })
		}},
		{name: "all outgoing blocked on all within 30 s, each at its moment", happens: func(f *fleet) {
			f.noSecond = true
			f.some(100, spread, func(n *node, at time.Duration) { n.out = from(at) })
		}},
		{name: "every port of all peers blocked on all at once", happens: func(f *fleet) {
			f.some(100, 0, func(n *node, at time.Duration) { n.cut = from(at) })
		}},
		{name: "every port of all peers blocked on all within 10 s", happens: func(f *fleet) {
			f.some(100, 10*time.Second, func(n *node, at time.Duration) { n.cut = from(at) })
		}},
		{name: "every port of all peers blocked on all within 30 s", most: 0.5, happens: func(f *fleet) {
			f.some(100, spread, func(n *node, at time.Duration) { n.cut = from(at) })
		}},
		// The first hosts are worse than the others when they ask. A shorter wait beside few
		// suspicions accuses more of them. With six seeds 4 to 10.5 % of 200 were accused.
		{name: "every port of all peers blocked on all within 2 min", most: 11, happens: func(f *fleet) {
			f.some(100, 4*spread, func(n *node, at time.Duration) { n.cut = from(at) })
		}},
		{name: "all outgoing blocked on all within 2 min, each at its moment", most: 15, happens: func(f *fleet) {
			f.noSecond = true
			f.some(100, 4*spread, func(n *node, at time.Duration) { n.out = from(at) })
		}},
	}
}

// outages of all.
func outages() []scenario {
	cutAll := func(within time.Duration) func(f *fleet) {
		return func(f *fleet) {
			f.allCut = span{start, start + 2*time.Minute}
			for _, n := range f.nodes { // all come back, each at its moment; peers and API server apart
				back := start + 2*time.Minute
				n.api = span{start, back + time.Duration(f.random.Float64()*float64(within))}
				n.cut = span{start, back + time.Duration(f.random.Float64()*float64(within))}
			}
		}
	}
	return []scenario{
		{name: "nothing happens", happens: func(*fleet) {}},
		{name: "API server down for all, 3 min", happens: func(f *fleet) { f.apiDown = span{start, start + 3*time.Minute} }},
		{name: "all networks down for 2 min, back within 30 s", happens: cutAll(spread)},
		{name: "DNS down for all at once", happens: func(f *fleet) { f.dnsDown = from(start) }},
		{name: "DNS down for all for 2 min, back within 10 s", happens: func(f *fleet) {
			f.some(100, 10*time.Second, func(n *node, at time.Duration) { n.dns = span{start, at + 2*time.Minute} })
		}},
		{name: "DNS down for all within 30 s, each at its moment", happens: func(f *fleet) {
			f.some(100, spread, func(n *node, at time.Duration) { n.dns = from(at) })
		}},
		{name: "API server down, peers gone for 1 % of the nodes", happens: func(f *fleet) {
			f.apiDown = from(start)
			f.some(1, 0, func(n *node, at time.Duration) { n.cut = from(at) })
		}},
	}
}

// lossy: nodes that lose packets.
func lossy(short bool) (all []scenario) {
	add := func(percent, loss, least float64, apiToo, oneWay bool) {
		name := fmt.Sprintf("%.0f %% of the nodes lose %.0f %% of packets", percent, loss)
		if oneWay {
			name += " one way"
		} else {
			name += " each way"
		}
		if apiToo {
			name += ", API server's too"
		}
		all = append(all, scenario{name: name, least: least, most: 0.1, happens: func(f *fleet) {
			f.some(percent, spread, func(n *node, at time.Duration) {
				n.lossy, n.loss, n.apiLoss, n.oneWay, n.broken = from(at), loss/100, apiToo, oneWay, percent < 100
			})
		}})
	}
	for _, loss := range []float64{5, 10, 20, 30, 50, 70, 80, 90} {
		if !short || loss == 10 || loss == 30 {
			add(2, loss, 95, false, false)
		}
	}
	if short {
		return all
	}
	add(2, 10, 90, false, true)
	for _, loss := range []float64{30, 50, 70, 90} {
		add(2, loss, 0, true, false)
	}
	for _, percent := range []float64{10, 20, 40} {
		add(percent, 20, 0, false, false)
	}
	add(20, 70, 0, false, false)
	for _, loss := range []float64{2, 10, 30, 60, 90} {
		add(100, loss, 0, false, false)
	}
	return all
}

// background: what every fleet has. In the long form the judges see 1,080,000 rounds of each loss.
func background(short bool) []scenario {
	lasts, losses := 90*time.Minute, []float64{0.01, 0.1, 0.5, 1, 2}
	if short {
		lasts, losses = 6*time.Minute, []float64{1}
	}
	all := []scenario{
		{name: "agents restart, a tenth at a time, each for 10 s", happens: func(f *fleet) {
			f.some(100, 0, func(n *node, at time.Duration) {
				at += time.Duration(n.random.IntN(10)) * 15 * time.Second
				n.in = span{at, at + 10*time.Second}
			})
		}},
		{name: "each node loses its share of packets, 0.01 to 1 % each way", lasts: lasts, happens: func(f *fleet) {
			f.some(100, 0, func(n *node, at time.Duration) { n.lossy, n.loss = from(at), 1e-4*math.Pow(100, f.random.Float64()) })
		}},
	}
	for _, loss := range losses {
		all = append(all, scenario{name: fmt.Sprintf("all nodes lose %g %% of packets each way", loss), lasts: lasts, happens: func(f *fleet) {
			f.some(100, 0, func(n *node, at time.Duration) { n.lossy, n.loss = from(at), loss/100 })
		}})
	}
	return all
}

// overlay: what crosses it, and the node's own daemons.
func overlay() []scenario {
	each := func(percent, least float64, name string, do func(n *node, at time.Duration)) scenario {
		return scenario{name: name, least: least, happens: func(f *fleet) {
			f.some(percent, spread, func(n *node, at time.Duration) {
				do(n, at)
				n.broken = percent < 100 && least > 0
			})
		}}
	}
	vxlan := func(n *node, at time.Duration) { n.vxlan = from(at) }
	return []scenario{
		each(0.5, 100, "DNS down on 0.5 % of the nodes", func(n *node, at time.Duration) { n.dns = from(at) }),
		each(0.5, 100, "VXLAN broken on 0.5 % of the nodes", vxlan),
		each(10, 99, "VXLAN broken on 10 % of the nodes", vxlan),
		each(100, 0, "VXLAN broken on all", vxlan),
		each(1, 100, "a CNI daemon gone on 1 % of the nodes", func(n *node, at time.Duration) { n.local = from(at) }),
		each(100, 0, "a CNI roll-out: each daemon away for 60 s", func(n *node, at time.Duration) {
			at += time.Duration(n.random.Int64N(int64(2 * time.Minute)))
			n.local = span{at, at + time.Minute}
		}),
	}
}

// holes: large packets that get lost.
func holes() (all []scenario) {
	for _, of := range []struct {
		name           string
		percent        float64
		within         time.Duration
		size           int
		least, healthy float64
	}{
		{"one of 8 nodes", 12.5, 0, 8, 100, 0},
		{"one of 3 nodes", 33.3, 0, 3, 100, 0},
		{"0.5 % of the nodes", 0.5, spread, 0, 100, 0},
		{"10 % of the nodes", 10, spread, 0, 90, 0},
		{"all at once", 100, 0, 0, 0, 0},
		{"all within 30 s", 100, spread, 0, 0, 0},
		{"all within 2 min", 100, 4 * spread, 0, 0, 5},
	} {
		all = append(all, scenario{name: "large packets get lost on " + of.name, size: of.size, least: of.least, most: of.healthy, happens: func(f *fleet) {
			f.some(of.percent, of.within, func(n *node, at time.Duration) { n.hole, n.broken = from(at), of.least > 0 })
		}})
	}
	return all
}

// small clusters.
func small() (all []scenario) {
	for _, size := range []int{2, 3, 4, 6} {
		one := scenario{name: fmt.Sprintf("one of %d nodes cut off", size), size: size, happens: func(f *fleet) {
			f.some(100/float64(size), 0, func(n *node, at time.Duration) { n.cut, n.broken = from(at), size > 2 })
		}}
		if size > 2 {
			one.least = 100
		}
		all = append(all, one,
			scenario{name: fmt.Sprintf("all of %d nodes cut off within 30 s", size), size: size, happens: func(f *fleet) {
				f.some(100, spread, func(n *node, at time.Duration) { n.cut = from(at) })
			}})
	}
	for _, of := range []struct{ size, cordoned int }{{3, 2}, {8, 5}} {
		all = append(all, scenario{name: fmt.Sprintf("one of %d nodes cut off, %d others cordoned", of.size, of.cordoned), size: of.size, least: 100, happens: func(f *fleet) {
			for _, n := range f.nodes[1 : 1+of.cordoned] {
				n.cordoned = true
			}
			f.nodes[0].cut, f.nodes[0].broken = from(start), true
		}})
	}
	for _, size := range []int{3, 4, 5, 6} {
		all = append(all, scenario{name: fmt.Sprintf("one of %d nodes loses 20 %% of packets each way", size), size: size, happens: func(f *fleet) {
			f.some(100/float64(size), 0, func(n *node, at time.Duration) { n.lossy, n.loss, n.broken = from(at), 0.2, true })
		}})
	}
	for _, size := range []int{4, 6, 12} {
		all = append(all, scenario{name: fmt.Sprintf("half cut from half of %d nodes", size), size: size, happens: func(f *fleet) {
			f.split = from(start)
			f.some(50, 0, func(n *node, _ time.Duration) { n.side = 1 })
		}})
	}
	return all
}
