package kmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// A chip that is off the bus answers every read with ones, and the driver
// does its arithmetic on them: each kind of file then shows a number of its
// own. These are those numbers, and this file is the only one to know them.
const (
	onesWord      = 0xFFFFFFFF // counts, clocks, mV, rpm, PCIe counters
	onesTemp      = 65535999   // temp1_input: 16.16 fixed point in m°C
	onesThousand  = 4294966296 // °C or A times 1000, modulo 2^32
	onesMillion   = 4293967296 // W times 1000000, modulo 2^32
	onesHalf      = 65535      // in0_max: the upper half of a word
	onesHex       = "FFFFFFFFFFFFFFFF"
	onesVersion   = "255.255.255.255"
	onesETH       = "255.15.4095"
	whyOnes       = "the chip answers with all ones"
	negativeBase  = 65536000 // m°C; the driver does not extend the sign
	negativeAbove = 32767999
	maxClockMHz   = 5000
)

// decoded is a value read from a driver file, and whether it is the one that
// a dead chip gives.
type decoded[T any] struct {
	reading model.Reading[T]
	ones    bool
}

func known[T any](v T) decoded[T] { return decoded[T]{reading: model.Value(v)} }

func allOnes[T any]() decoded[T] {
	return decoded[T]{reading: model.Missing[T](model.Hung, whyOnes), ones: true}
}

func bad[T any](format string, args ...any) decoded[T] {
	return decoded[T]{reading: model.Missing[T](model.Implausible, fmt.Sprintf(format, args...))}
}

// number reads a decimal of at most 64 bits.
func number(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// count reads a 32-bit value that counts something.
func count(text string) decoded[uint32] {
	n, ok := number(text)
	switch {
	case !ok || n > onesWord:
		return bad[uint32]("the driver printed %q where a 32-bit number belongs", clip(text))
	case n == onesWord:
		return allOnes[uint32]()
	}
	return known(uint32(n))
}

// scaled reads a number and divides it; ones is what a dead chip shows.
func scaled(ones uint64, div float64) func(string) decoded[float64] {
	return func(text string) decoded[float64] {
		n, ok := number(text)
		switch {
		case !ok:
			return bad[float64]("the driver printed %q where a number belongs", clip(text))
		case n == ones:
			return allOnes[float64]()
		case n > onesWord:
			return bad[float64]("the driver printed %d, more than 32 bits hold", n)
		}
		return known(float64(n) / div)
	}
}

// limit is scaled for limits, where firmware that has none gives 0.
func limit(ones uint64, div float64) func(string) decoded[float64] {
	read := scaled(ones, div)
	return func(text string) decoded[float64] {
		d := read(text)
		if d.reading.Known() && d.reading.V == 0 {
			return decoded[float64]{reading: model.Missing[float64](model.Absent, "the firmware gives no limit")}
		}
		return d
	}
}

// clock reads MHz. The driver prints whatever the firmware left in the word.
func clock(text string) decoded[float64] {
	d := scaled(onesWord, 1)(text)
	if d.reading.Known() && d.reading.V > maxClockMHz {
		return bad[float64]("%.0f MHz is beyond what any chip does", d.reading.V)
	}
	return d
}

// temperature reads m°C. Below zero the driver shows 65536000 more; a sensor
// error (0x80000000) comes out as 32768000.
func temperature(text string) decoded[float64] {
	n, ok := number(text)
	switch {
	case !ok:
		return bad[float64]("the driver printed %q where a temperature belongs", clip(text))
	case n == onesTemp:
		return allOnes[float64]()
	}
	milli := int64(n)
	if n > negativeAbove {
		milli -= negativeBase
	}
	if milli > 200_000 || milli < -100_000 {
		return bad[float64]("%d m°C is what a failed sensor gives", n)
	}
	return known(float64(milli) / 1000)
}

// hexID reads a 64-bit id of 16 hex digits.
func hexID(text string) decoded[string] {
	switch {
	case text == onesHex:
		return allOnes[string]()
	case len(text) != 16:
		return bad[string]("the driver printed %q where 16 hex digits belong", clip(text))
	case text == "0000000000000000":
		return decoded[string]{reading: model.Missing[string](model.Absent, "the firmware gives 0")}
	}
	if _, err := strconv.ParseUint(text, 16, 64); err != nil {
		return bad[string]("the driver printed %q where 16 hex digits belong", clip(text))
	}
	return known(strings.ToUpper(text))
}

// dotted reads a version of n decimal parts. All zeros stand for "none".
func dotted(n int, ones string) func(string) decoded[string] {
	return func(text string) decoded[string] {
		if text == ones {
			return allOnes[string]()
		}
		parts := strings.Split(text, ".")
		zero := true
		for _, p := range parts {
			v, err := strconv.ParseUint(p, 10, 16)
			if err != nil || len(parts) != n {
				return bad[string]("the driver printed %q where a version of %d parts belongs", clip(text), n)
			}
			zero = zero && v == 0
		}
		if zero {
			return decoded[string]{reading: model.Missing[string](model.Absent, "the firmware gives "+text)}
		}
		return known(text)
	}
}

// cardType reads the driver's name for the board.
func cardType(text string) decoded[string] {
	if text == "unknown" || text == "" {
		return decoded[string]{reading: model.Missing[string](model.Absent, "the driver does not know this board")}
	}
	return known(text)
}

// linkGen reads "16.0 GT/s PCIe" as a generation.
func linkGen(text string) decoded[int] {
	speed, _, _ := strings.Cut(text, " ")
	for gen, s := range []string{1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0", 6: "64.0"} {
		if s != "" && (speed == s || speed == strings.TrimSuffix(s, ".0")) {
			return known(gen)
		}
	}
	return bad[int]("the kernel printed %q for the link speed", clip(text))
}

// linkWidth reads a number of lanes. A dead function shows all ones: 63.
func linkWidth(text string) decoded[int] {
	n, ok := number(text)
	if !ok || n == 0 || n > 32 {
		return bad[int]("the kernel printed %q for the link width", clip(text))
	}
	return known(int(n))
}

// clip keeps foreign text in a reason short.
func clip(s string) string {
	if len(s) > 24 {
		return s[:24] + "…"
	}
	return s
}

// numaNode reads a node number; -1 stands for "none".
func numaNode(text string) decoded[int] {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return bad[int]("the kernel printed %q for the NUMA node", clip(text))
	case n < 0:
		return decoded[int]{reading: model.Missing[int](model.Absent, "the kernel knows no NUMA node for it")}
	}
	return known(n)
}

// cpuList reads a list such as "0-15,32-47" as it is.
func cpuList(text string) decoded[string] {
	if text == "" {
		return decoded[string]{reading: model.Missing[string](model.Absent, "the kernel knows no CPUs near it")}
	}
	return known(text)
}
