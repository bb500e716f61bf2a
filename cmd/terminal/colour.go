package terminal

// Colour is the sequence that sets the colour of the letters after it.
type Colour string

// The colours.
const (
	Red     Colour = "\x1b[31m"
	Green   Colour = "\x1b[32m"
	Yellow  Colour = "\x1b[33m"
	Magenta Colour = "\x1b[35m"

	uncoloured = "\x1b[0m"
)

// Paint returns the text in a colour; of no colour: the text.
func (c Colour) Paint(text string) string {
	if c == "" {
		return text
	}
	return string(c) + text + uncoloured
}
