package main

import (
	"strings"
	"testing"
)

// The list has each reason once, with how many tests it is of, and no package without tests.
func TestSkipped(t *testing.T) {
	const events = `{"Action":"output","Package":"a/b","Test":"TestX","Output":"    x_test.go:1: a log\n"}
{"Action":"output","Package":"a/b","Test":"TestX","Output":"    x_test.go:2: needs root\n"}
{"Action":"output","Package":"a/b","Test":"TestY/sub","Output":"    y_test.go:3: needs root\n"}
{"Action":"skip","Package":"a/b","Test":"TestY/sub"}
{"Action":"skip","Package":"a/b","Test":"TestX"}
{"Action":"skip","Package":"a/c"}
{"Action":"skip","Package":"a/c","Test":"TestZ"}
{"Action":"pass","Package":"a/c","Test":"TestW"}
`
	r := reasons{}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.String(), "skipped   2: needs root (b.TestY/sub …)\nskipped   1: no reason given (c.TestZ)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := r.read(strings.NewReader("FAIL\n")); err == nil {
		t.Error("what is no event is passed over")
	}
}
