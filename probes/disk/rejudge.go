package disk

import (
	"slices"

	"github.com/taintlet/taintlet/probes"
)

// Rejudge judges the space, the inodes, the silence and the writes that were recorded
// of these paths and directories, as Measures names them. False: something else decided
// the recorded sample, such as a read-only mount.
func (t Thresholds) Rejudge(recorded probes.Observation, quantities []probes.Measure, paths []string, writes ...Write) (probes.Observation, bool) {
	if !followsFromMeasures(recorded.Reason) {
		return probes.Observation{}, false
	}
	var s sample
	for _, q := range quantities {
		if slices.Contains([]string{"write", "writes_slow", "write_no_answer"}, q.Name) {
			s.addRecordedWrite(q, writes)
			continue
		}
		if slices.Contains(paths, q.Path) {
			s.addRecorded(q)
		}
	}
	if len(s.paths)+len(s.writes) == 0 {
		return probes.Observation{}, false
	}
	return t.judge(s).join(), true
}

// followsFromMeasures reports whether Measures has all that leads to the reason.
func followsFromMeasures(reason string) bool {
	switch reason {
	case "SpaceLow", "SpaceNearThreshold", "SpaceSufficient",
		"InodesLow", "InodesNearThreshold", "InodesSufficient",
		"WriteSlow", "WriteSlowBriefly", "WriteNearThreshold", "WritePrompt",
		"FileSystemBlocked", "StatfsBlocked", "WriteBlocked", "WritePending":
		return true
	}
	return false
}

// addRecordedWrite adds a quantity to what is known of a write, if it is one of those.
func (s *sample) addRecordedWrite(q probes.Measure, writes []Write) {
	of := slices.IndexFunc(writes, func(w Write) bool { return w.Directory == q.Path })
	if of < 0 {
		return
	}
	i := slices.IndexFunc(s.writes, func(w writeSample) bool { return w.Directory == q.Path })
	if i < 0 {
		i = len(s.writes)
		s.writes = append(s.writes, writeSample{Write: writes[of]})
	}
	w := &s.writes[i]
	switch q.Name {
	case "write":
		w.took = q.Duration()
	case "writes_slow":
		w.slowFor = q.Duration()
	case "write_no_answer":
		// As for a path in addRecorded.
		w.silence, w.unhealthy = q.Duration(), true
	}
}

// addRecorded adds a quantity to what is known of its path.
func (s *sample) addRecorded(q probes.Measure) {
	i := slices.IndexFunc(s.paths, func(r pathReport) bool { return r.name == q.Path })
	if i < 0 {
		i = len(s.paths)
		s.paths = append(s.paths, pathReport{name: q.Path, answered: true, fileSystem: fileSystem{path: q.Path}})
	}
	r := &s.paths[i]
	switch q.Name {
	case "available":
		r.fileSystem.available = uint64(q.Value)
	case "size":
		r.fileSystem.size = uint64(q.Value)
	case "free_inodes":
		r.fileSystem.inodesFree = uint64(q.Value)
	case "inodes":
		r.fileSystem.inodesTotal = uint64(q.Value)
	case "no_answer":
		// Whether the path was healthy before is not recorded. So it stays Unknown, as
		// if it had not been, until the time of the threshold is over.
		r.answered, r.silence, r.unhealthy = false, q.Duration(), true
	}
}
