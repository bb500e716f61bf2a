package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
)

const (
	// maxFile is the longest file that is read, in bytes. One with every field has about 4 KiB.
	maxFile = 64 << 10
	// maxError is the longest report of errors, in bytes, which quotes the file. An Event holds it.
	maxError = 1800
)

// readFile reads a regular file of at most maxFile bytes. Anything else, such as a
// FIFO or a device, would have the reader wait, or read, for ever.
func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s is not a regular file", path))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if len(data) > maxFile {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return data, err
}

var (
	// aHead is what may stand before a document, and aMark what begins or ends one.
	aHead = regexp.MustCompile(`^(?:[ \t]*(?:[#%].*)?\r?\n)*---\s`)
	aMark = regexp.MustCompile(`(?m)^(?:---|\.\.\.)\s`)
	// aQuote is a text in quotes, or a comment. aReference is an anchor, an alias or an open quote.
	// All of them begin a value, and not in the middle of a word.
	aQuote     = regexp.MustCompile(`(^|[\s\[{,:-])(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|#.*)`)
	aReference = regexp.MustCompile(`(?:^|[\s\[{,:-])[&*"']`)
)

// checkYAML refuses what a configuration does not need: a second document, which
// the decoder would pass over in silence, and anchors and aliases, by which some
// bytes can stand for gigabytes. A quote that is open at the end of its line could hide one.
func checkYAML(text string) error {
	if aMark.MatchString(text[len(aHead.FindString(text)):]) {
		return errors.New("only one YAML document is allowed in a file, without ... at its end")
	}
	for number, line := range strings.Split(text, "\n") {
		if aReference.MatchString(aQuote.ReplaceAllString(line, "$1")) {
			return fmt.Errorf("line %d: YAML anchors and aliases (&name, *name) are not allowed, nor is a text in quotes of several lines", number+1)
		}
	}
	return nil
}

// shorten cuts a long error in the middle: its beginning has the field, and its end says what is
// allowed.
func shorten(err error) error {
	text := err.Error()
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError/2], "") + " … " + strings.ToValidUTF8(text[len(text)-maxError/2:], "")
	}
	return errors.New(text)
}
