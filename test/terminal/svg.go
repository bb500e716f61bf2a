package terminal

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

// Sizes of a picture, in pixels.
const (
	cellWidth  = 7.8
	cellHeight = 18
	margin     = 16
	titleBar   = 32
)

// style has colours of at least 7:1 on the background, which the picture brings along:
// the page may be dark or light.
const style = `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;fill:#e6edf3;white-space:pre}
.paper{fill:#0d1117;stroke:#6e7681}.bar{fill:#21262d}.title{fill:#b6bec8}
.c31{fill:#ff7b72}.c32{fill:#56d364}.c33{fill:#e3b341}.c35{fill:#dabbff}`

// SVG draws the Screen below the command that wrote it.
func (s *Screen) SVG(command string) []byte {
	columns := 0
	for _, line := range s.lines {
		columns = max(columns, len(line))
	}
	width, height := float64(columns)*cellWidth+2*margin, len(s.lines)*cellHeight+titleBar+2*margin-8
	var p bytes.Buffer
	fmt.Fprintf(&p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&p, "<style>%s</style>\n", style)
	fmt.Fprintf(&p, `<rect class="paper" x="0.5" y="0.5" width="%.0f" height="%d" rx="8"/>`+"\n", width-1, height-1)
	fmt.Fprintf(&p, `<path class="bar" d="M1 %dV9a8 8 0 0 1 8-8H%.0fa8 8 0 0 1 8 8V%dz"/>`+"\n", titleBar, width-9, titleBar)
	write(&p, margin, titleBar-11, "title", "$ "+command)
	for i, line := range s.lines {
		for _, r := range runs(line) {
			write(&p, margin+float64(r.column)*cellWidth, float64(titleBar+margin+i*cellHeight+10), r.class(), r.text)
		}
	}
	p.WriteString("</svg>\n")
	return p.Bytes()
}

// write puts a text where it starts, and as wide as its cells whatever the font is.
func write(p *bytes.Buffer, x, y float64, class, text string) {
	fmt.Fprintf(p, `<text x="%.1f" y="%.0f" textLength="%.1f" lengthAdjust="spacingAndGlyphs"`, x, y, float64(len([]rune(text)))*cellWidth)
	if class != "" {
		fmt.Fprintf(p, ` class="%s"`, class)
	}
	p.WriteString(">")
	_ = xml.EscapeText(p, []byte(text)) // a Buffer takes everything
	p.WriteString("</text>\n")
}

// run is a part of a line in one colour that has no gap.
type run struct {
	column int
	color  Color
	text   string
}

func (r run) class() string {
	if r.color == Plain {
		return ""
	}
	return fmt.Sprintf("c%d", r.color)
}

// runs are the parts of a line that are drawn at once. A gap of two spaces parts the
// columns of a table.
func runs(line []cell) (all []run) {
	isLetter := func(at int, color Color) bool {
		return at >= 0 && at < len(line) && line[at].letter != ' ' && line[at].color == color
	}
	for i, c := range line {
		if isWithin := isLetter(i-1, c.color) && isLetter(i+1, c.color); c.letter == ' ' && !isWithin {
			continue
		}
		last := len(all) - 1
		if last >= 0 && all[last].color == c.color && all[last].column+len([]rune(all[last].text)) == i {
			all[last].text += string(c.letter)
			continue
		}
		all = append(all, run{i, c.color, string(c.letter)})
	}
	return all
}
