package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

const (
	// maxFile is the longest configuration file that is read, in bytes. A file
	// with every field has about 4 KiB.
	maxFile = 64 << 10
	// maxError is the longest report of the errors in a file, and maxLine the longest
	// error, in bytes: an error quotes the file.
	maxError = 2 << 10
	maxLine  = 400
)

// readFile reads a regular file of at most maxFile bytes. Anything else, such as a
// FIFO or a device, would have the reader wait, or read, for ever.
func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return data, nil
}

// checkYAML refuses what a configuration does not need: a second document, which
// the decoder would pass over in silence, and anchors and aliases, by which some
// bytes can stand for gigabytes.
func checkYAML(text string) error {
	var begun, ended bool
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		marker, rest, _ := strings.Cut(line, " ")
		isMarker := marker == "---" || marker == "..."
		if isMarker {
			line = rest
		}
		word := strings.TrimSpace(line)
		hasContent := word != "" && word[0] != '#' && word[0] != '%'
		if ended && (hasContent || marker == "---") || begun && marker == "---" {
			return fmt.Errorf("line %d: only one YAML document is allowed in a file", number+1)
		}
		begun, ended = begun || hasContent, ended || marker == "..."
		if hasAnchor(line) {
			return fmt.Errorf("line %d: YAML anchors and aliases (&name, *name) are not allowed", number+1)
		}
	}
	return nil
}

// hasAnchor reports whether a line has an anchor or an alias: & or * at the start
// of a value, outside of quotes and comments.
func hasAnchor(line string) bool {
	var quote byte
	before := byte(' ')
	for i := range len(line) {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case strings.IndexByte(" \t[{,:-", before) < 0: // within a word
		case c == '"' || c == '\'':
			quote = c
		case c == '#' && (before == ' ' || before == '\t'):
			return false
		case c == '&' || c == '*':
			return true
		}
		before = c
	}
	return false
}

// shorten joins the errors and returns at most maxError bytes of text. Of a long
// one, the beginning has the field and the end says what is allowed.
func shorten(errs ...error) error {
	var lines []string
	left := maxError
	for _, err := range errs {
		line := err.Error()
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine/2], "") + " … " + strings.ToValidUTF8(line[len(line)-maxLine/2:], "")
		}
		if left -= len(line); left < 0 {
			lines = append(lines, "… and more")
			break
		}
		lines = append(lines, line)
	}
	return errors.New(strings.Join(lines, "\n"))
}
