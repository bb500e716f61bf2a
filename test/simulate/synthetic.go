package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// The made-up inputs. usage tells what each is.
const (
	quiet            = "quiet"
	spike            = "spike"
	flap             = "flap"
	adversary        = "adversary"
	kubeletAdversary = "kubelet-adversary"
	random           = "random"
	mixed            = "mixed"
)

func generatorNames() []string {
	return []string{quiet, spike, flap, adversary, kubeletAdversary, random, mixed}
}

// parameters are the flags of generators.
type parameters struct {
	seed       uint64
	flapPeriod time.Duration
	flapDuty   float64
}

// synthesize makes the input of a name that generatorNames has.
func synthesize(name string, conditions []string, p parameters) *input {
	in := &input{name: name, sources: map[probes.Condition]source{}}
	if name == mixed {
		in.sources[probes.MemoryPressure] = generator(adversary, probes.MemoryPressure, p)
		in.sources[probes.DiskPressure] = generator(flap, probes.DiskPressure, p)
		in.sources[probes.PIDPressure] = generator(random, probes.PIDPressure, p)
		in.sources[probes.NetworkUnavailable] = generator(adversary, probes.NetworkUnavailable, p)
		return in
	}
	for _, c := range conditions {
		in.sources[probes.Condition(c)] = generator(name, probes.Condition(c), p)
	}
	return in
}

func generator(name string, c probes.Condition, p parameters) source {
	switch name {
	case spike:
		return spikes{}
	case flap:
		return flapping{p.flapPeriod, time.Duration(float64(p.flapPeriod) * (1 - p.flapDuty))}
	case adversary:
		return &opponent{tainted: func(held answers) bool { return held.taintlet }}
	case kubeletAdversary:
		return &opponent{tainted: func(held answers) bool { return held.kubelet }}
	case random:
		return &dice{rand: rand.New(rand.NewPCG(p.seed, uint64(slices.Index(config.Default().Names(), c))))}
	default:
		return constant{fine()}
	}
}

// spikes are bursts of different lengths, far apart.
type spikes struct{}

const (
	firstSpike = 301 * time.Second
	// spikeEvery is no multiple of 10 s, so that the bursts meet the samples of
	// every rule at different phases.
	spikeEvery = 903 * time.Second
)

func (spikes) at(now time.Duration, _ answers) (sample, time.Duration) {
	lengths := []time.Duration{1, 2, 3, 5, 10, 20, 30, 60} // seconds
	if now < firstSpike {
		return fine(), firstSpike
	}
	n := (now - firstSpike) / spikeEvery
	begin := firstSpike + n*spikeEvery
	if end := begin + lengths[int(n)%len(lengths)]*time.Second; now < end {
		return sample{level: probes.Degraded}, end
	}
	return fine(), begin + spikeEvery
}

// flapping is good for a part of each period, then bad.
type flapping struct{ period, good time.Duration }

// flapOffset is when the first period begins. Without it every failure would
// begin at the very moment of a sample.
const flapOffset = 3 * time.Second

func (f flapping) at(now time.Duration, _ answers) (sample, time.Duration) {
	if now < flapOffset {
		return fine(), flapOffset
	}
	begin := now - (now-flapOffset)%f.period
	if now < begin+f.good {
		return fine(), begin + f.good
	}
	return sample{level: probes.Degraded}, begin + f.period
}

// failAfter is how long the opponent waits after a clear. It is enough for the
// rule to sample at least once and see that all is well.
const failAfter = 2 * time.Second

// opponent drives a rule to as many changes as it can: it fails soon after
// each clear and heals as soon as the Node is tainted.
type opponent struct {
	tainted func(answers) bool
	was     bool
	cleared time.Duration
}

func (o *opponent) at(now time.Duration, held answers) (sample, time.Duration) {
	before := o.was
	o.was = o.tainted(held)
	if o.was {
		return fine(), forever
	}
	if before {
		o.cleared = now
	}
	if failAt := o.cleared + failAfter; now < failAt {
		return fine(), failAt
	}
	return sample{level: probes.Degraded}, forever
}

// dice draw a level and how long it holds, again and again.
type dice struct {
	rand  *rand.Rand
	drawn sample
	until time.Duration
}

func (d *dice) at(now time.Duration, _ answers) (sample, time.Duration) {
	for d.until <= now {
		mean := time.Minute
		d.drawn = sample{}
		switch face := d.rand.IntN(100); {
		case face < 50:
			d.drawn.level = probes.OK
			mean = 10 * time.Minute
		case face < 60:
			d.drawn = sample{level: probes.OK, hysteresis: true}
		case face < 85:
			d.drawn = sample{level: probes.Degraded, certain: face < 65}
		case face < 90:
			d.drawn.level = probes.Critical
		default:
			d.drawn.level = probes.Unknown
		}
		length := time.Duration(d.rand.ExpFloat64() * float64(mean))
		d.until += max(time.Second, length.Round(time.Millisecond))
	}
	return d.drawn, d.until
}
