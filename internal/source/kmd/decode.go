package kmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// A chip that is off the bus answers every read with ones, and the driver does
// its arithmetic on them: each kind of file then shows another number. Only
// this file knows these numbers.
const (
	onesWord      = 0xFFFFFFFF // counts, clocks, PCIe counters
	onesHalf      = 0xFFFF     // the same in a field of 16 bits
	onesTemp      = 65535999   // temp1_input: 16.16 fixed point in m°C
	onesSixteenth = 4095937    // temp1_input: 1/16 °C in 16 bits, in m°C
	onesWidth     = 63         // link width
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

// quantity is how a kind of sensor is printed.
type quantity struct {
	unit string
	div  float64 // printed units in one of ours
	most float64 // in our unit; more is impossible
	// What a dead chip shows: ones in a word of 32 bits, and in a field of 16
	// bits, which Wormhole's clocks have up to driver 2.1 and its sensors up
	// to 2.8. The products are taken modulo 2^32.
	ones [2]uint64
}

var (
	megahertz = quantity{"MHz", 1, maxClockMHz, [2]uint64{onesWord, onesHalf}}
	watts     = quantity{"W", 1e6, 2000, [2]uint64{onesWord * 1_000_000 & onesWord, onesHalf * 1_000_000 & onesWord}}
	amperes   = quantity{"A", 1e3, 2000, [2]uint64{onesWord * 1000 & onesWord, onesHalf * 1000}}
	volts     = quantity{"V", 1e3, 5, [2]uint64{onesWord, onesHalf}}
	degrees   = quantity{"°C", 1e3, 200, [2]uint64{onesWord * 1000 & onesWord, onesHalf * 1000}}
	rpm       = quantity{"rpm", 1, 50_000, [2]uint64{onesWord, onesHalf}}
)

// measured reads a sensor. The driver prints any word that the firmware stored.
func measured(q quantity) func(string) decoded[float64] {
	return func(text string) decoded[float64] {
		n, ok := number(text)
		if !ok {
			return bad[float64]("the driver printed %q where a number belongs", clip(text))
		}
		if n == q.ones[0] || n == q.ones[1] {
			return allOnes[float64]()
		}
		v := float64(n) / q.div
		if v > q.most {
			return bad[float64]("%.0f %s is beyond what any board does", v, q.unit)
		}
		return known(v)
	}
}

// limit is measured for limits, where firmware that has none gives 0.
func limit(q quantity) func(string) decoded[float64] {
	read := measured(q)
	return func(text string) decoded[float64] {
		d := read(text)
		if d.reading.Known() && d.reading.V == 0 {
			return decoded[float64]{reading: model.Missing[float64](model.Absent, "the firmware gives no limit")}
		}
		return d
	}
}

// temperature reads m°C. Below zero the driver shows 65536000 more; a sensor
// error (0x80000000) comes out as 32768000.
func temperature(text string) decoded[float64] {
	n, ok := number(text)
	switch {
	case !ok:
		return bad[float64]("the driver printed %q where a temperature belongs", clip(text))
	case n == onesTemp, n == onesSixteenth:
		return allOnes[float64]()
	}
	milli := int64(n)
	if n > negativeAbove {
		milli -= negativeBase
	}
	if milli > 200_000 || milli < -100_000 || n > onesTemp {
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

// linkWidth reads a number of lanes, a field of six bits.
func linkWidth(text string) decoded[int] {
	n, ok := number(text)
	if ok && n == onesWidth {
		return allOnes[int]()
	}
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
