package text

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/internal/rundiff"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendDiff prints how two runs or two moments differ: the most that was held,
// who holds more, which lines do, which blocks are new; at most top lines of each.
func AppendDiff(dst []byte, d *rundiff.Diff, top int) []byte {
	for i, s := range []*rundiff.Side{d.A, d.B} {
		dst = append(dst, diffHead("AB"[i:i+1], s)...)
	}
	if len(d.Pools) > 0 {
		dst = fmt.Appendf(dst, "\n%-28s %-8s %12s %12s %13s %12s %12s\n", "at most", "", "A", "B", "B − A", "held in A", "held in B")
	}
	for _, p := range d.Pools {
		mark := ""
		if p.Unsure {
			mark = "~"
		}
		figure := func(n *uint64) string {
			if n == nil {
				return "N/A"
			}
			return mark + words.Bytes(*n)
		}
		dst = fmt.Appendf(dst, "%s %-8s %12s %12s %13s %12s %12s\n", words.Fit(words.Escape(p.Chip), 28), p.Pool,
			figure(p.PeakA), figure(p.PeakB), changeOf(p.PeakA, p.PeakB), figure(p.HeldA), figure(p.HeldB))
	}
	dst = appendPlaces(dst, d, top)
	if len(d.Users) > 0 {
		dst = append(dst, "\nprograms, DRAM by the snapshots\n"...)
	}
	for _, u := range d.Users {
		dst = fmt.Appendf(dst, "%s %12s %12s %13s\n", words.Fit(words.Escape(u.Name), 37), words.Figure(u.A), words.Figure(u.B), changeOf(u.HeldA, u.HeldB))
	}
	return dst
}

func diffHead(name string, s *rundiff.Side) string {
	how := "by snapshots: no program told its blocks"
	if s.Exact {
		how = "exact"
	}
	if s.Lost > 0 {
		how = fmt.Sprintf("%d events were missed", s.Lost)
	}
	out := fmt.Sprintf("%s  %s   %s, %.1f s", name, s.Name, s.At.Local().Format("2006-01-02 15:04:05"), s.Seconds)
	if len(s.Command) > 0 {
		out += "   " + strings.Join(s.Command, " ")
	}
	if s.Exit != nil {
		out += fmt.Sprintf("   exit %d", *s.Exit)
	}
	return words.Escape(out+"   "+how) + "\n"
}

func appendPlaces(dst []byte, d *rundiff.Diff, top int) []byte {
	switch {
	case !d.A.Exact && !d.B.Exact:
		return dst
	case !d.Exact:
		return append(dst, "\nlines and blocks cannot be compared: only one of the two has them\n"...)
	}
	if len(d.Places) == 0 {
		return append(dst, "\nevery line of code holds and has allocated the same\n"...)
	}
	dst = fmt.Appendf(dst, "\n%-37s %12s %12s %13s %19s\n", "lines that differ", "held in A", "held in B", "B − A", "allocations A, B")
	for i, p := range d.Places {
		if i == top {
			dst = fmt.Appendf(dst, "%d more (--top)\n", len(d.Places)-top)
			break
		}
		dst = fmt.Appendf(dst, "%s %12s %12s %13s %19s\n", words.Fit(placeName(p.Place), 37), words.Bytes(p.HeldA), words.Bytes(p.HeldB), change(p.HeldA, p.HeldB),
			fmt.Sprintf("%d, %d", p.AllocsA, p.AllocsB))
	}
	if len(d.Blocks) == 0 {
		return append(dst, "\nB holds no block that A does not\n"...)
	}
	dst = append(dst, "\nblocks that B holds and A does not\n"...)
	for i, b := range d.Blocks {
		if i == top {
			dst = fmt.Appendf(dst, "%d more kinds (--top)\n", len(d.Blocks)-top)
			break
		}
		dst = fmt.Appendf(dst, "%s %12s × %d\n", words.Fit(placeName(b.Place), 37), words.Bytes(b.Bytes), b.Count)
	}
	return dst
}

func placeName(p rundiff.Place) string {
	name := "(no call site)"
	if p.File != "" {
		name = fmt.Sprintf("%s:%d %s", filepath.Base(p.File), p.Line, p.Function)
	}
	if p.Tag != "" {
		name += " [" + p.Tag + "]"
	}
	return words.Escape(name + " " + p.Pool)
}

// changeOf is change where both are known.
func changeOf(a, b *uint64) string {
	if a == nil || b == nil {
		return words.Nothing
	}
	return change(*a, *b)
}

// change is a difference with its sign.
func change(a, b uint64) string {
	switch {
	case b > a:
		return "+" + words.Bytes(b-a)
	case a > b:
		return "−" + words.Bytes(a-b)
	}
	return "="
}
