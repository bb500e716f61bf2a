package probes

import (
	"math"
	"strconv"
)

// bytesText writes a number of bytes for a person, in binary units with at
// most three significant digits (four from 1000 to 1023): "412 MiB",
// "15.6 GiB".
func bytesText(bytes float64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit := 0
	for math.Round(bytes) >= 1024 && unit < len(units)-1 {
		bytes /= 1024
		unit++
	}
	digits := 0
	switch {
	case unit == 0 || bytes >= 99.95:
	case bytes >= 9.995:
		digits = 1
	default:
		digits = 2
	}
	scale := math.Pow10(digits)
	return plain(math.Round(bytes*scale)/scale) + " " + units[unit]
}

// shareText writes part of whole in percent with one decimal, rounded down: a
// value that is still below a threshold never reads as the threshold itself.
func shareText(part, whole float64) string {
	if whole <= 0 {
		return "0.0 %"
	}
	const roundingError = 1e-9
	percent := math.Floor(1000*part/whole+roundingError) / 10
	return strconv.FormatFloat(percent, 'f', 1, 64) + " %"
}

// percentText writes a percentage as it was configured: "5 %", "7.5 %".
func percentText(percent float64) string { return plain(percent) + " %" }

// plain writes a number without exponent and without needless zeros.
func plain(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }
