// Package terminal draws what a program wrote to a terminal as an SVG, for the
// documentation.
package terminal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Color is the parameter of the sequence that sets the colour of what follows,
// such as 31 for red. Plain is no colour.
type Color int

// The colours that taintlet writes in.
const (
	Plain   Color = 0
	Red     Color = 31
	Green   Color = 32
	Yellow  Color = 33
	Magenta Color = 35
)

// cell is one letter on a screen.
type cell struct {
	letter rune
	color  Color
}

// Screen is what a terminal shows.
type Screen struct {
	lines        [][]cell
	line, column int
	color        Color
}

// Read returns the Screen as it is after a program wrote the text. It knows the few
// sequences that taintlet writes, and refuses others.
func Read(text string) (*Screen, error) {
	s := &Screen{}
	// Between letters there may be the end of a line, or a control sequence.
	between := regexp.MustCompile(`^(?:\r?\n|\r|\x1b\[(\d*)([A-Za-z]))`)
	for text != "" {
		if found := between.FindStringSubmatch(text); found != nil {
			if err := s.control(found[0], found[1], found[2]); err != nil {
				return nil, err
			}
			text = text[len(found[0]):]
			continue
		}
		letter := []rune(text)[0]
		if letter < ' ' {
			return nil, fmt.Errorf("unknown control character %q", letter)
		}
		s.put(letter)
		text = text[len(string(letter)):]
	}
	return s, nil
}

func (s *Screen) control(all, number, name string) error {
	switch number + name {
	case "": // the end of a line
		s.column = 0
		s.line += strings.Count(all, "\n")
	case "H":
		s.line, s.column = 0, 0
	case "2J":
		s.lines = nil
	case "K":
		s.eraseLine()
	case "J":
		s.eraseLine()
		last := s.line
		if s.column > 0 {
			last++
		}
		s.lines = s.lines[:min(len(s.lines), last)]
	default:
		color := Color(0)
		if _, err := fmt.Sscanf(number+name, "%dm", &color); err != nil || !slices.Contains(colors(), color) {
			return fmt.Errorf("unknown sequence %q", all)
		}
		s.color = color
	}
	return nil
}

func colors() []Color { return []Color{Plain, Red, Green, Yellow, Magenta} }

// eraseLine erases the rest of the line.
func (s *Screen) eraseLine() {
	if s.line < len(s.lines) {
		s.lines[s.line] = s.lines[s.line][:min(len(s.lines[s.line]), s.column)]
	}
}

// put writes a letter over what is there.
func (s *Screen) put(letter rune) {
	for len(s.lines) <= s.line {
		s.lines = append(s.lines, nil)
	}
	for len(s.lines[s.line]) <= s.column {
		s.lines[s.line] = append(s.lines[s.line], cell{letter: ' '})
	}
	s.lines[s.line][s.column] = cell{letter, s.color}
	s.column++
}

// String is the text on the Screen, without colours.
func (s *Screen) String() string {
	var text strings.Builder
	for _, line := range s.lines {
		for _, c := range line {
			text.WriteRune(c.letter)
		}
		text.WriteString("\n")
	}
	return text.String()
}
