package test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const claimsPage = "security/claims.md"

// claim is a row of a table of claimsPage.
type claim struct{ text, tests string }

// TestSecurityClaims checks that each row of a table of claims names tests, and that these are
// in the file that the row links.
func TestSecurityClaims(t *testing.T) {
	page := readText(t, claimsPage)
	claims := claimsOf(page)
	if len(claims) < 50 {
		t.Errorf("only %d claims were found", len(claims))
	}
	for _, c := range claims {
		if err := c.check(); err != nil {
			t.Errorf("%s\n%v", c.text, err)
		}
	}
	for _, attacker := range []string{"stolen agent token", "rogue kubelet", "rogue peer", "rogue ConfigMap writer"} {
		_, section, found := strings.Cut(page, "### A "+attacker+"\n")
		section, _, _ = strings.Cut(section, "\n##")
		if !found || !strings.Contains(section, "\n| can |") || !strings.Contains(section, "\n| cannot |") {
			t.Errorf("the page does not say what a %s can and cannot do", attacker)
		}
	}
}

// claimsOf returns the rows of all tables whose last column is called test.
func claimsOf(page string) (all []claim) {
	inClaims := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			inClaims = false
		case last == "test":
			inClaims = true
		case inClaims && !strings.HasPrefix(line, "|---"):
			all = append(all, claim{strings.TrimSpace(strings.Join(cells[:len(cells)-1], ": ")), last})
		}
	}
	return all
}

var claimedPattern = regexp.MustCompile(`\[((?:Test|Fuzz)[\w/-]+)\]\(([^)]+)\)`)

// check is an error where the claim names no test, or one that is not where its link leads.
func (c claim) check() error {
	named := claimedPattern.FindAllStringSubmatch(c.tests, -1)
	if len(named) == 0 {
		return fmt.Errorf("no test is named: %q", c.tests)
	}
	for _, match := range named {
		function, _, _ := strings.Cut(match[1], "/")
		linked := filepath.Join(filepath.Dir(claimsPage), match[2])
		file, text := fileOfTest(filepath.Dir(linked), function)
		if file != linked {
			return fmt.Errorf("%s is not in %s", match[1], match[2])
		}
		if !exists(map[string][]string{function: {text}}, match[1]) {
			return fmt.Errorf("there is no %s", match[1])
		}
	}
	if rest := claimedPattern.ReplaceAllString(c.tests, ""); strings.Trim(rest, ", ") != "" {
		return fmt.Errorf("beside the tests, the cell has %q", rest)
	}
	return nil
}
