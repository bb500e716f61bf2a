package main

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/taintlet/taintlet/agent/status"
)

// plainWriter passes text on without what commands a terminal. Every verb writes
// through one, because much of what is printed was written by others: names and
// owners of pods, taints, messages of an API server. Pictures on a terminal are drawn
// past it (newScreen): their colours are ours, and their texts were cleaned where
// they were read.
type plainWriter struct {
	w io.Writer
	// part is the begin of a rune whose rest has not been written yet.
	part []byte
}

// Write writes all but the begin of a rune at the end.
func (p *plainWriter) Write(text []byte) (int, error) {
	all := append(p.part, text...)
	end := len(all)
	for begin := max(0, end-utf8.UTFMax+1); begin < end; begin++ {
		if utf8.RuneStart(all[begin]) && !utf8.FullRune(all[begin:]) {
			end = begin
		}
	}
	p.part = append([]byte(nil), all[end:]...)
	if _, err := io.WriteString(p.w, status.Plain(string(all[:end]))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// maxError is the longest error that is printed, in bytes. Parts of an error come
// from files and from others.
const maxError = 8 << 10

// shortened returns the text of an error, cut where it is too long. All lines but the
// first are indented, so that no part of an error looks like a message of its own.
func shortened(err error) string {
	return strings.ReplaceAll(status.Cut(err.Error(), maxError), "\n", "\n  ")
}
