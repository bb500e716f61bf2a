//go:build race

package process

// RaceEnabled says whether this process has the race detector.
const RaceEnabled = true
