package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The text beside the picture of the documentation has the figures of the input that it shows.
func TestDocumentationsFigures(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(strings.Fields("--synthetic flap --flap-period 10m --flap-duty 0.0167 --duration 6h"), &stdout, &stderr); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	page, err := os.ReadFile("../../docs/how-it-decides.md")
	if err != nil {
		t.Fatal(err)
	}
	for rule, sentence := range map[string]string{
		ruleTaintlet: "With taintlet it changes %s times", ruleKubelet: "the taint changes %s times",
	} {
		changes := regexp.MustCompile(`All: ` + rule + ` (\d+) changes`).FindSubmatch(stdout.Bytes())
		if changes == nil || !strings.Contains(string(page), fmt.Sprintf(sentence, changes[1])) {
			t.Errorf("the page does not say that by the rule of %s there are %s changes", rule, changes)
		}
	}
}
