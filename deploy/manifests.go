// Package deploy has the manifests that install taintlet.
package deploy

import _ "embed" // the manifests

// Taintlet is deploy/taintlet.yaml.
//
//go:embed taintlet.yaml
var Taintlet string

// Keep is deploy/keep.yaml.
//
//go:embed keep.yaml
var Keep string
