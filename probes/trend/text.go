package trend

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// BytesText writes a number of bytes for a message: "412 MiB", "15.6 GiB". It uses binary units and
// at most three significant digits, or four from 1000 to 1023.
func BytesText(bytes float64) string { return bytesText(bytes, 0) }

// BytesApart writes two numbers of bytes that a reader compares, with as many digits as make them
// differ.
func BytesApart(a, b float64) (textA, textB string) {
	for more := range 9 {
		textA, textB = bytesText(a, more), bytesText(b, more)
		if textA != textB || a == b {
			break
		}
	}
	return textA, textB
}

// bytesText writes a number of bytes with more digits than BytesText.
func bytesText(bytes float64, more int) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit := 0
	for math.Round(bytes) >= 1024 && unit < len(units)-1 {
		bytes /= 1024
		unit++
	}
	digits := more
	switch {
	case unit == 0 || bytes >= 99.95:
	case bytes >= 9.995:
		digits++
	default:
		digits += 2
	}
	scale := math.Pow10(digits)
	return plain(math.Round(bytes*scale)/scale) + " " + units[unit]
}

// ItemsText writes a number of whole things.
func ItemsText(items float64) string { return strconv.FormatFloat(items, 'f', 0, 64) }

// ShareText writes part of whole in percent with one decimal: "2.6 %". It rounds down, so that a
// value below a threshold never reads as the threshold itself.
func ShareText(part, whole float64) string {
	if whole <= 0 {
		return "0.0 %"
	}
	const roundingError = 1e-9
	percent := math.Floor(1000*part/whole+roundingError) / 10
	return strconv.FormatFloat(percent, 'f', 1, 64) + " %"
}

// PercentText writes a percentage as it was configured: "5 %", "7.5 %".
func PercentText(percent float64) string { return plain(percent) + " %" }

// TimesText writes a percentage times a factor, rounded up to one decimal: the
// threshold that clears. A factor below 1 counts as 1.
func TimesText(percent, factor float64) string {
	const roundingError = 1e-9
	return plain(math.Ceil(10*percent*max(1, factor)-roundingError)/10) + " %"
}

// TimeText writes a duration as "412 ms", "3.2 s", "42 s" or "2 h 5 min". It rounds up, so that a
// time beyond a threshold never reads as less.
func TimeText(d time.Duration) string {
	seconds := math.Ceil(d.Seconds())
	switch {
	case d < time.Second:
		return plain(math.Ceil(float64(d)/float64(time.Millisecond))) + " ms"
	case d < 10*time.Second:
		return plain(math.Ceil(float64(d)/float64(time.Second/10))/10) + " s"
	case seconds < 120:
		return plain(seconds) + " s"
	case seconds < 2*3600:
		return plain(math.Ceil(seconds/60)) + " min"
	}
	minutes := math.Ceil(seconds / 60)
	return plain(math.Floor(minutes/60)) + " h " + plain(math.Mod(minutes, 60)) + " min"
}

// plain writes a number without exponent and without needless zeros.
func plain(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

// Printable makes a name that a process chose fit for one line of text, cut to most bytes.
// Characters that would end a name in a message, or that do not print, become question marks.
func Printable(name string, most int) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || unicode.IsMark(r) || r == utf8.RuneError || r == ';' || r == '(' || r == ')' {
			return '?'
		}
		return r
	}, name)
	if len(name) <= most {
		return name
	}
	const more = "…"
	return strings.ToValidUTF8(name[:most-len(more)], "") + more
}
