// Package output prints objects in the formats of kubectl, as far as these are of one object.
package output

import (
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// Formats are the values of --output that Print knows. One that ends in = takes a template.
func Formats() []string { return []string{"json", "yaml", "jsonpath="} }

// Print prints an object. It reports whether the format is one of the Formats. Templates of Go
// are none: with text/template a program is 17 MB larger.
func Print(w io.Writer, format string, object runtime.Object) (isKnown bool, err error) {
	kind, template, _ := strings.Cut(format, "=")
	var printer printers.ResourcePrinter
	var before, after string
	switch kind {
	case "json":
		printer = &printers.JSONPrinter{}
	case "yaml":
		printer, before = &printers.YAMLPrinter{}, "---\n" // a watch prints several
	case "jsonpath":
		printer, err = printers.NewJSONPathPrinter(template)
		after = "\n"
	default:
		return false, nil
	}
	if err == nil {
		_, err = io.WriteString(w, before)
	}
	if err == nil {
		err = printer.PrintObj(object, w)
	}
	if err == nil {
		_, err = io.WriteString(w, after)
	}
	return true, err
}
