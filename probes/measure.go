package probes

// Unit is the unit of a Measure.
type Unit uint8

// The units.
const (
	Bytes   Unit = iota
	Seconds      // of a time
	Ratio        // a share, 0 to 1
	Items        // whole things, such as tasks or inodes
)

// Measure is a quantity that a probe compares with thresholds.
type Measure struct {
	// Name is a constant of the probe, in lower case with underscores.
	Name string
	// Path tells quantities of one name apart. It is a path of the configuration,
	// and empty where there is one such quantity.
	Path string
	Unit Unit
	// Value is what the newest sample showed.
	Value float64
	// Degraded and Critical are the thresholds of these levels, Clear the easier
	// one that clears. 0: there is none.
	Degraded, Critical, Clear float64
}

// Measurer is a Probe that tells the quantities that it judges by.
type Measurer interface {
	Probe
	// Measures appends the quantities of the newest sample. What is not known is
	// left out. It is called from the goroutine that calls Observe, after it.
	Measures(all []Measure) []Measure
}
