package terminal

import "testing"

func TestLinesAreCutToTheTerminal(t *testing.T) {
	const red, uncoloured = "\x1b[31m", "\x1b[0m"
	line := "a " + red + "bär" + uncoloured + " end"
	for columns, want := range map[int]string{
		0: line, 80: line, 9: line, 8: "a " + red + "bär" + uncoloured + " e…",
		4: "a " + red + "b…" + uncoloured, 1: "…" + red + uncoloured,
	} {
		if got := cut(line, columns); got != want {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
}
