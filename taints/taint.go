package taints

import (
	"fmt"
	"strings"
	"time"
)

// Effect is what a taint does to pods that do not tolerate it.
type Effect string

// The effects of taints.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Taint is a taint of a Node. Its JSON is that of the API.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect Effect `json:"effect"`
	// TimeAdded is that of the Node's taint, in UTC; zero: it has none.
	TimeAdded time.Time `json:"timeAdded,omitzero"`
}

// Pair returns the taint's identity.
func (t Taint) Pair() Pair { return Pair{t.Key, t.Effect} }

// String is the form in which kubectl shows the taint.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Pair().String()
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// Pair is a taint's identity: a Node holds each (key, effect) at most once, with any value.
type Pair struct {
	Key    string
	Effect Effect
}

// With is the taint of this identity with a value; empty: none.
func (p Pair) With(value string) Taint {
	return Taint{Key: p.Key, Value: value, Effect: p.Effect}
}

// String is the form in which kubectl shows a taint without a value.
func (p Pair) String() string { return p.Key + ":" + string(p.Effect) }

// MarshalText writes the form of String.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the form of String.
func (p *Pair) UnmarshalText(text []byte) error {
	key, effect, found := strings.Cut(string(text), ":")
	if !found || key == "" {
		return fmt.Errorf("pair %q is not of the form key:effect", text)
	}
	*p = Pair{key, Effect(effect)}
	return nil
}
