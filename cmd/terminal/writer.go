package terminal

import (
	"io"
	"unicode/utf8"
)

// Writer passes text on to W without what commands a terminal. Every verb writes
// through one, because much of what is printed was written by others: names and
// owners of pods, taints, messages of an API server. Pictures on a terminal are drawn
// past it (NewScreen): their colours are ours, and their texts were cleaned where
// they were read.
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
