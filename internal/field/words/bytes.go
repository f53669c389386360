package words

import (
	"math"
	"strconv"
	"strings"
)

var byteUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Widths of the column forms, in cells.
const (
	BytesWidth = 8  // "99.9 GiB"
	RateWidth  = 10 // "99.9 GiB/s"
	PairWidth  = 13 // "10.2/24.0 GiB"
)

// Bytes says a number of bytes in binary units with two or three digits:
// "0 B", "410 KiB", "1.3 MiB", "10.2 GiB". It takes at most BytesWidth cells.
func Bytes(n uint64) string {
	number, unit := scale(float64(n))
	return number + " " + unit
}

// BytesColumn is Bytes in exactly BytesWidth cells, numbers and units each
// in their own column.
func BytesColumn(n uint64) string {
	number, unit := scale(float64(n))
	return PadLeft(number, 4) + " " + Pad(unit, 3)
}

// Rate says bytes per second: "1.2 GiB/s". It takes at most RateWidth cells.
func Rate(bytesPerSecond float64) string {
	number, unit := scale(bytesPerSecond)
	return number + " " + unit + "/s"
}

// UsedOf says used of total in the unit of total: "10.2/24.0 GiB". It takes
// at most PairWidth cells for anything below 1024 TiB. Nothing is "0", and
// something too little for the unit is "<0.1": neither is mistaken for the other.
func UsedOf(used, total uint64) string {
	step := stepOf(float64(total))
	t := digits(float64(total), step)
	return usedIn(used, step) + "/" + t + " " + byteUnits[step]
}

func usedIn(used uint64, step int) string {
	if used == 0 {
		return "0"
	}
	s := digits(float64(used), step)
	if strings.Trim(s, "0.") == "" {
		return "<0.1"
	}
	return s
}

// scale splits n into a number of at most four cells and its unit.
func scale(n float64) (number, unit string) {
	if n < 0 || math.IsNaN(n) {
		n = 0
	}
	step := stepOf(n)
	return digits(n, step), byteUnits[step]
}

// stepOf is the unit in which n has at most four digits once it is rounded.
func stepOf(n float64) int {
	step := 0
	for n >= 1023.5 && step < len(byteUnits)-1 {
		n /= 1024
		step++
	}
	return step
}

// digits writes n in units of 1024^step: one decimal below 10, and below 100
// from GiB on, where a tenth is still a hundred megabytes.
func digits(n float64, step int) string {
	v := n / math.Pow(1024, float64(step))
	decimals := 0
	if step > 0 && (v < 9.95 || step >= 3 && v < 99.95) {
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
