package words

import (
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Widths of the column forms of figures: one cell more than those of plain
// numbers, for the mark.
const (
	FigureWidth     = BytesWidth + 1 // "≥99.9 GiB"
	FigurePairWidth = PairWidth + 1  // "~10.2/24.0 GiB"
)

// Mark is what stands before a number that is not exact: "≥" where something
// is not in it, "~" where it may be too high or too low.
func Mark(b model.Bound) string {
	switch b {
	case model.Exact:
		return ""
	case model.AtLeast:
		return "≥"
	default:
		return "~"
	}
}

// Figure says a memory figure with its mark: "9.9 GiB", "≥9.9 GiB",
// "~20.0 GiB", or the word for why there is none.
func Figure(b model.Bytes) string {
	n, bound, known := b.Best()
	if !known {
		return Missing(b.Status())
	}
	return Mark(bound) + Bytes(n)
}

// FigureInText is Figure for sentences: "≥ 9.9 GiB".
func FigureInText(b model.Bytes) string {
	text := Figure(b)
	if rest, ok := strings.CutPrefix(text, Mark(model.AtLeast)); ok {
		return Mark(model.AtLeast) + " " + rest
	}
	return text
}

// FigureColumn is Figure in exactly FigureWidth cells, numbers and units each
// in their own column. The word of a missing one is not padded.
func FigureColumn(b model.Bytes) string {
	n, bound, known := b.Best()
	if !known {
		return Missing(b.Status())
	}
	return BoundColumn(n, bound)
}

// BoundColumn is FigureColumn of a number and its bound.
func BoundColumn(n uint64, bound model.Bound) string {
	number, unit := scale(float64(n))
	return PadLeft(Mark(bound)+number, 5) + " " + Pad(unit, 3)
}

// FigureOf says a figure and of how much, in the unit of the total:
// "~10.2/24.0 GiB".
func FigureOf(b model.Bytes, total uint64) string {
	n, bound, known := b.Best()
	if !known {
		return Missing(b.Status())
	}
	return Mark(bound) + UsedOf(n, total)
}

// FigureOfColumn is FigureOf in exactly FigurePairWidth cells, the slashes
// aligned.
func FigureOfColumn(b model.Bytes, total uint64) string {
	n, bound, known := b.Best()
	if !known {
		return Missing(b.Status())
	}
	step := stepOf(float64(total))
	return PadLeft(Mark(bound)+usedIn(n, step)+"/"+digits(float64(total), step), 10) + " " + Pad(byteUnits[step], 3)
}

// BuffersOnly is said of a pool of which only what buffers asked for is known,
// where they take more than that: the same range of L1 in every core. Short is
// for columns.
const (
	BuffersOnly      = "buffers only"
	BuffersOnlyShort = "buf"
)

// Taken is how much of a pool is taken, as far as it may be compared with how
// much there is; ok is false where no ratio may be drawn. Buffers take the
// same range of every core's L1, so that what they asked for says nothing about
// how full it is: only what the allocator itself says does.
func Taken(p model.Pool, u *model.PoolUse) (taken model.Bytes, total uint64, ok bool) {
	total, ok = u.Total.Get()
	taken = u.Occupied
	if !taken.Known() && p == model.DRAM {
		taken = u.Used
	}
	return taken, total, ok && total > 0 && taken.Known()
}

// Ratio is how full a pool is, from 0 to 1, and how sure that is; ok is false
// where no bar may be drawn.
func Ratio(p model.Pool, u *model.PoolUse) (ratio float64, bound model.Bound, ok bool) {
	taken, total, ok := Taken(p, u)
	if !ok {
		return 0, model.Exact, false
	}
	n, bound, _ := taken.Best()
	return float64(n) / float64(total), bound, true
}

// Pool says what is known of a pool: of how much it is taken, or what its
// buffers asked for ("38 MiB buf"), or why nothing is known.
func Pool(p model.Pool, u *model.PoolUse, t model.Tracking) string {
	return pool(p, u, t, BuffersOnlyShort)
}

// PoolLong is Pool where there is room for "38 MiB buffers only".
func PoolLong(p model.Pool, u *model.PoolUse, t model.Tracking) string {
	return pool(p, u, t, BuffersOnly)
}

func pool(p model.Pool, u *model.PoolUse, t model.Tracking, buffers string) string {
	if taken, total, ok := Taken(p, u); ok {
		return FigureOf(taken, total)
	}
	return bufferMark(p, u, FigureOr(u.Used, t), buffers)
}

// PoolColumn is Pool in at most FigurePairWidth cells.
func PoolColumn(p model.Pool, u *model.PoolUse, t model.Tracking) string {
	if taken, total, ok := Taken(p, u); ok {
		return FigureOfColumn(taken, total)
	}
	if !u.Used.Known() {
		return FigureOr(u.Used, t)
	}
	return bufferMark(p, u, FigureColumn(u.Used), BuffersOnlyShort)
}

func bufferMark(p model.Pool, u *model.PoolUse, text, buffers string) string {
	if p == model.L1 && u.Used.Known() && !u.Occupied.Known() {
		return text + " " + buffers
	}
	return text
}

// FigureOr is Figure, and where the figure was not filled in, the word for the
// whole memory.
func FigureOr(b model.Bytes, t model.Tracking) string {
	if b.Status() == model.Absent {
		return UntrackedWord(t)
	}
	return Figure(b)
}

// FigureColumnOr is FigureOr in the column form.
func FigureColumnOr(b model.Bytes, t model.Tracking) string {
	if b.Status() == model.Absent {
		return UntrackedWord(t)
	}
	return FigureColumn(b)
}

// CBMeaning says what a figure of circular buffers counts: it is seldom what
// they take right now.
func CBMeaning(c model.CBMeaning) string {
	switch c {
	case "":
		return ""
	case model.CBCached:
		return "sum over all cached programs, often far more than is in use at once"
	case model.CBPartly:
		return "of cached programs, without most ops: far too low"
	case model.CBResident:
		return "of the programs in L1 now"
	case model.CBLargest:
		return "of each core's L1, by the largest cached program: programs lie over each other"
	case model.CBReported:
		return "as the program reports it"
	default: // of a newer ttmond
		return Escape(string(c))
	}
}

// InferredL1 says what circular buffers and kernels may take; empty: nothing is known of it.
func InferredL1(b model.Bytes) string {
	if !b.Known() {
		return ""
	}
	return Figure(b) + ", inferred: L1 that the driver counts and no process accounts for"
}

// CBMeaningShort is CBMeaning for a narrow place.
func CBMeaningShort(c model.CBMeaning) string { return Escape(string(c)) }
