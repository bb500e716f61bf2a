package probes

// Culprit is who took most of what is scarce: a third of it or more. The zero value says
// nothing.
type Culprit struct {
	// Kind is pod, unit, cgroup, process, kernel or own, or none where nobody took a third.
	// Empty: it is not known.
	Kind string `json:"kind,omitempty"`
	// Name is the UID of the pod, or the name of the unit, of the control group or of the
	// process.
	Name string `json:"name,omitempty"`
	// Command is the name of most of its processes.
	Command string `json:"command,omitempty"`
	// Unit is that of Took and Holds: Bytes or Items, which are tasks.
	Unit Unit `json:"-"`
	// Took is what it took since the host was healthy, Seconds in how long, and Holds what
	// it has now.
	Took    float64 `json:"took,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Holds   float64 `json:"holds,omitempty"`
	// IsGone: it has ended.
	IsGone bool `json:"gone,omitempty"`
	// IsTold: the Message says what is known, were it only that nobody can be named.
	IsTold bool `json:"-"`
	// Unreadable says why nobody can be named, whatever happens on this host.
	Unreadable string `json:"unreadable,omitempty"`
}

// Who names the culprit in one word that is the same in each sample; empty: the Message says
// nothing of it.
func (c Culprit) Who() string {
	who := c.Kind
	if who == "" && c.IsTold {
		who = "not known"
	}
	if c.Name != "" {
		who += " " + c.Name
	}
	if c.IsGone {
		who += " (gone)"
	}
	return who
}
