package config

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
)

// Bounds of what makes sense. They keep a typing error from turning the
// agent into a busy loop, or into an agent that never takes a sample.
const (
	maxPaths = 32
	maxPath  = 4096 // PATH_MAX
	// maxKeys is the total length of all keys of the rules. It keeps the
	// record, which names each owned pair, within its 4 KiB.
	maxKeys = 1500
)

// Bound says which values a field can have. The chart has the same list, in bounds.json.
type Bound struct {
	// Field is the path of the field: memory.period, or conditions[].period in each entry of
	// a list.
	Field string `json:"field"`
	// Low and High are the lowest and the highest value: a number, a duration, or an amount
	// of memory.
	Low  string `json:"low"`
	High string `json:"high"`
	// OrZero: 0 is allowed too, and means never.
	OrZero bool `json:"orZero,omitempty"`
}

// Bounds returns the bounds of all fields that have some.
func Bounds() []Bound {
	bounds := []Bound{
		{Field: "memory.period", Low: "250ms", High: "10m"},
		{Field: "disk.period", Low: "250ms", High: "10m"},
		{Field: "pid.period", Low: "250ms", High: "10m"},
		{Field: "network.period", Low: "1s", High: "10m"}, // a burst of probes would be a part of the trouble
		{Field: "conditions[].period", Low: "1s", High: "10m"},
		{Field: "conditions[].staleAfter", Low: "1m", High: "24h", OrZero: true},
		{Field: "memory.availablePercent", Low: "0", High: "100"},
		{Field: "memory.availableBytes", Low: "0", High: "1Ei"}, // more would not fit the sums that are made of it
		{Field: "memory.stalledPercent", Low: "0", High: "100"},
		{Field: "memory.stalledAvailablePercent", Low: "0", High: "100"},
		{Field: "memory.criticalStalledPercent", Low: "0", High: "100"},
		{Field: "memory.clearFactor", Low: "1", High: "10"},
		{Field: "disk.availablePercent", Low: "0", High: "100"},
		{Field: "disk.inodesPercent", Low: "0", High: "100"},
		{Field: "disk.blockedAfter", Low: "0s", High: "1h"},
		{Field: "disk.writeProbe.interval", Low: "1s", High: "1h"},
		{Field: "disk.writeProbe.slowAfter", Low: "0s", High: "4s"}, // a sample, and so the wait for a write, ends after 5 s
		{Field: "disk.clearFactor", Low: "1", High: "10"},
		{Field: "pid.usedPercent", Low: "0.001", High: "100"},
		{Field: "pid.criticalUsedPercent", Low: "0", High: "100"},
		{Field: "pid.clearFactor", Low: "1", High: "10"},
		{Field: "writeBudget.burst", Low: "1", High: "100"},
		{Field: "writeBudget.interval", Low: "1s", High: "24h"},
		{Field: "eviction.slots", Low: "0", High: "100"},
		{Field: "eviction.cooldown", Low: "1s", High: "24h"},
		{Field: "eviction.interval", Low: "0s", High: "168h"},
		{Field: "fleetBrake.percent", Low: "0", High: "100"},
		{Field: "fleetBrake.minPeers", Low: "1", High: "12"}, // fleet.MaxPeers
		{Field: "startup.timeout", Low: "1m", High: "24h"},
		{Field: "repair.after", Low: "0s", High: "24h"},
		{Field: "heartbeat", Low: "1m", High: "8h", OrZero: true}, // taintlet cleanup stale waits for a day: two to miss
		{Field: "softRules[].severity", Low: "1", High: "49"},     // 50 is the threshold of Degraded
	}
	for _, section := range []string{"", "memory.", "disk.", "pid.", "network.", "conditions[]."} {
		bounds = append(bounds, []Bound{
			{Field: section + "debounce.samples", Low: "1", High: "32"},
			{Field: section + "debounce.badSamples", Low: "1", High: "32"},
			{Field: section + "debounce.clearAfter", Low: "0s", High: "24h"},
			{Field: section + "debounce.maxClearAfter", Low: "0s", High: "24h"},
			{Field: section + "debounce.penaltyHalfLife", Low: "1m", High: "168h"},
			{Field: section + "debounce.criticalAfter", Low: "0s", High: "1h"},
			{Field: section + "debounce.unknownAfter", Low: "1m", High: "24h"},
		}...)
	}
	return bounds
}

// validateBounds returns every value that is out of the bounds of its field.
func (c *Config) validateBounds() (errs field.ErrorList) {
	for _, bound := range Bounds() {
		for _, at := range c.find(bound.Field) {
			value := size(at.value.Interface())
			if (value >= size(bound.Low) && value <= size(bound.High)) || bound.OrZero && value == 0 {
				continue
			}
			if _, name, isOfSection := strings.Cut(bound.Field, "."+debounceField+"."); isOfSection && within(found{nil, reflect.ValueOf(&c.Debounce).Elem()}, name)[0].value.Interface() == at.value.Interface() {
				continue // which would be told for each section
			}
			errs = append(errs, field.Invalid(at.path, shownValue(at.value), bound.String()))
		}
	}
	return errs
}

// boundsBeside returns the values out of bounds, but for those of fields that other errors are
// about, and for entries of lists, which such errors can have left out.
func (c *Config) boundsBeside(others []error) (errs []error) {
	for _, invalid := range c.validateBounds() {
		isTold := slices.ContainsFunc(others, func(err error) bool { return strings.HasPrefix(err.Error(), invalid.Field+":") })
		if !isTold && !strings.Contains(invalid.Field, "[") {
			errs = append(errs, invalid)
		}
	}
	return errs
}

// String says which values are allowed.
func (b Bound) String() string {
	low, high := b.Low, b.High
	if b.OrZero {
		low = "0 (never), or " + low
	}
	return "must be " + low + " to " + high
}

// found is a value of a configuration.
type found struct {
	path  *field.Path
	value reflect.Value
}

// find returns the values of a field: one, or one for each entry of a list.
func (c *Config) find(name string) []found {
	first, rest, _ := strings.Cut(name, ".")
	if first == reportedField+"[]" {
		var all []found
		for i, r := range reportedIn(c.Conditions) {
			all = append(all, within(found{field.NewPath(reportedField).Index(i), reflect.ValueOf(r).Elem()}, rest)...)
		}
		return all
	}
	for _, condition := range c.Conditions {
		if condition.Field == first {
			return within(found{field.NewPath(first), reflect.ValueOf(condition.Section).Elem()}, rest)
		}
	}
	return within(found{nil, reflect.ValueOf(c).Elem()}, name)
}

// within returns the values of a field of a struct.
func within(at found, name string) []found {
	if name == "" {
		return []found{at}
	}
	first, rest, _ := strings.Cut(name, ".")
	first, isList := strings.CutSuffix(first, "[]")
	for _, member := range reflect.VisibleFields(at.value.Type()) {
		if jsonName(member) != first || first == "" {
			continue
		}
		inner := found{at.path.Child(first), at.value.FieldByIndex(member.Index)}
		if !isList {
			return within(inner, rest)
		}
		var all []found
		for i := range inner.value.Len() {
			all = append(all, within(found{inner.path.Index(i), inner.value.Index(i)}, rest)...)
		}
		return all
	}
	return nil
}

// size is how large a value of a field is, or the text of one.
func size(value any) float64 {
	switch value := value.(type) {
	case decide.Duration:
		return value.Seconds()
	case resource.Quantity:
		return value.AsApproximateFloat64()
	case int:
		return float64(value)
	case float64:
		return value
	}
	text := fmt.Sprint(value)
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	q := resource.MustParse(text)
	return q.AsApproximateFloat64()
}

// shownValue is a value as an error shows it.
func shownValue(value reflect.Value) any {
	if text, ok := value.Interface().(fmt.Stringer); ok {
		return text.String()
	}
	if q, ok := value.Interface().(resource.Quantity); ok {
		return q.String()
	}
	return value.Interface()
}

func absolute(p string, at *field.Path) field.ErrorList {
	if !path.IsAbs(p) || path.Clean(p) != p || len(p) > maxPath {
		return field.ErrorList{field.Invalid(at, p, "must be an absolute path without . and .. and trailing /, of at most "+strconv.Itoa(maxPath)+" bytes")}
	}
	return nil
}

// clearFactor checks that the threshold that a factor makes can be reached at all. setPercent
// is the share that must be free.
func clearFactor(value float64, at *field.Path, setPercent float64) field.ErrorList {
	if value >= 1 && value*setPercent > 100 {
		return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("the condition could never clear: %g times a threshold of %g %% free is over 100 %%", value, setPercent))}
	}
	return nil
}

// controlPlanePrefixes are those of all reserved and all reconciled keys: a
// stand-in must not be one of them.
func controlPlanePrefixes() []string {
	return []string{"node.kubernetes.io", "node.cloudprovider.kubernetes.io"}
}
