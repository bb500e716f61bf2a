// Package terminal writes to terminals: texts of other programs without control sequences, in lines
// that fit.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Clean makes a text from another program safe for one line of a terminal: Plain, without line
// ends, and cut to most bytes.
func Clean(text string, most int) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return '?'
		}
		return r
	}, Plain(Cut(text, most)))
}

// Sentence is Clean of a text of several lines, such as an error that has several: they
// become parts of one sentence.
func Sentence(text string, most int) string {
	return Clean(strings.NewReplacer(":\n", ": ", "\n", "; ").Replace(strings.TrimSpace(text)), most)
}

// Plain makes a text safe for a terminal. Unprintable characters, changes of the writing direction
// and combining marks become question marks. Line ends and tabs stay.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case !unicode.IsPrint(r) || unicode.IsMark(r) || r == utf8.RuneError:
			return '?'
		}
		return r
	}, text)
}

// Cut cuts a text to at most this many bytes, followed by an ellipsis.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// Wrap breaks a text into lines of at most this many columns. The first line begins with first, the
// other lines with indent. A longer word is cut. 0 columns: one line.
func Wrap(text, first, indent string, columns int) (lines []string) {
	if columns == 0 || columns <= utf8.RuneCountInString(first) || columns <= utf8.RuneCountInString(indent) {
		return []string{first + text}
	}
	line, space := first, ""
	for words := strings.Fields(text); len(words) > 0; {
		letters, room := []rune(words[0]), columns-utf8.RuneCountInString(line+space)
		if len(letters) <= room {
			line, space, words = line+space+words[0], " ", words[1:]
			continue
		}
		if space == "" { // the begin of a line: the word is longer than it
			line, words[0] = line+string(letters[:room]), string(letters[room:])
		}
		lines, line, space = append(lines, line), indent, ""
	}
	if space != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// Aligned puts the cells of rows below one another, two columns apart.
func Aligned(rows [][]string) []string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush() //nolint:errcheck // a Builder takes all
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// Span is a duration in at most two units, such as 3 h 20 min.
func Span(d time.Duration) string {
	d = d.Truncate(time.Second)
	minutes := int(d.Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", minutes)
	case d < 24*time.Hour && minutes%60 == 0, d >= 10*time.Hour && d < 48*time.Hour:
		return fmt.Sprintf("%d h", minutes/60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d d", minutes/60/24)
}

// Count is a number of things, such as 1 Node or 3 Nodes.
func Count(number int, what string) string {
	if number == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", number, what)
}

// With is a text, and after a separator more of it unless that is empty.
func With(text, separator, more string) string {
	if more == "" {
		return text
	}
	return text + separator + more
}

// Listed joins the first of some names and says how many more there are.
func Listed(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Writer passes text on to W without control sequences for a terminal. Every verb writes through a
// Writer, because much of its output comes from other programs: names and owners of pods, taints,
// messages of an API server.
type Writer struct {
	W io.Writer
	// part is the begin of a rune whose rest has not been written yet.
	part []byte
}

// Write writes all but the begin of a rune at the end.
func (p *Writer) Write(text []byte) (int, error) {
	all := append(p.part, text...)
	end := len(all)
	for begin := max(0, end-utf8.UTFMax+1); begin < end; begin++ {
		if utf8.RuneStart(all[begin]) && !utf8.FullRune(all[begin:]) {
			end = begin
		}
	}
	p.part = append([]byte(nil), all[end:]...)
	if _, err := io.WriteString(p.W, Plain(string(all[:end]))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Size is the size of the terminal behind the Writer; 0, 0: there is none, or it does not say.
func (p *Writer) Size() (columns, lines int) {
	if file, isFile := p.W.(*os.File); isFile {
		columns, lines, _ = term.GetSize(int(file.Fd()))
	}
	return columns, lines
}

// Clear clears the terminal, which then writes from its first line on. Elsewhere it writes an empty line.
func (p *Writer) Clear() error {
	clearing := "\x1b[H\x1b[2J"
	if _, lines := p.Size(); lines == 0 {
		clearing = "\n"
	}
	_, err := io.WriteString(p.W, clearing)
	return err
}
