//go:build race

package build

// RaceEnabled says whether this process has the race detector.
const RaceEnabled = true
