package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fencedPattern  = regexp.MustCompile("(?s)```.*?```")
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ (.+)$`)
	linkedText     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor       = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Each link of a page to a file of the repository leads to a file that is there and, with an
// anchor, to a heading of it.
func TestLinksResolve(t *testing.T) {
	headings, count := map[string]map[string]bool{}, 0
	for _, page := range filesOf(t, ".md") {
		for _, match := range linkPattern.FindAllStringSubmatch(fencedPattern.ReplaceAllString(readText(t, page), ""), -1) {
			link := match[1]
			if strings.Contains(link, ":") {
				continue // elsewhere
			}
			count++
			path, anchor, _ := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links %s: %v", page, link, err)
				continue
			}
			if headings[target] == nil && anchor != "" {
				headings[target] = anchorsOf(readText(t, target))
			}
			if anchor != "" && !headings[target][anchor] {
				t.Errorf("%s links %s, and that page has no such heading", page, link)
			}
		}
	}
	if count < 500 {
		t.Errorf("only %d links were found", count)
	}
}

// filesOf returns the files of the repository whose names have this end.
func filesOf(t *testing.T, end string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, end) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// anchorsOf returns the anchors that GitHub gives to the headings of a page.
func anchorsOf(page string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range headingPattern.FindAllStringSubmatch(fencedPattern.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(linkedText.ReplaceAllString(heading[1], "$1"))
		all[strings.ReplaceAll(noAnchor.ReplaceAllString(text, ""), " ", "-")] = true
	}
	return all
}
