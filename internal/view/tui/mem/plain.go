package mem

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Text is plain text for terminals without screens, pipes and logs. It
// remembers the snapshots it was given, for rates and peaks.
type Text struct {
	Only  []string // devices by any of their names; empty: all
	Bars  bool     // draw bars
	Width int      // of the terminal, for sentences; 0: any
	trend trend
}

// barWidth is how long a bar is.
const barWidth = 25

// Once writes a block per chip: every pool, and who holds it.
func (t *Text) Once(dst []byte, s *model.Snapshot) []byte {
	t.trend.addSample(s)
	dst = t.simulated(dst, s)
	for i, c := range chipsOf(s, t.Only) {
		if i > 0 {
			dst = append(dst, '\n')
		}
		dst = t.block(dst, s, c)
	}
	if text := words.Quiet(s, shows(s, t.Only)); text != "" {
		dst = t.sentence(append(dst, '\n'), "", text)
	}
	return dst
}

// sentence writes a sentence, in as many lines as it takes.
func (t *Text) sentence(dst []byte, indent, text string) []byte {
	lines := []string{text}
	if t.Width > 0 {
		lines = words.Wrap(text, t.Width-len(indent)-2)
	}
	return append(dst, indent+strings.Join(lines, "\n"+indent+"  ")+"\n"...)
}

func (t *Text) simulated(dst []byte, s *model.Snapshot) []byte {
	if s.Simulated {
		dst = append(dst, words.Simulated+"\n"...)
	}
	return dst
}

func (t *Text) block(dst []byte, s *model.Snapshot, c chip) []byte {
	m := c.mem()
	dst = fmt.Appendf(dst, "device %s", c.title())
	if is := assess.Of(s).Device(c.dev.Index); is.Level > model.Fine {
		dst = fmt.Appendf(dst, "  %s", words.Kind(is.Kind))
	}
	dst = append(dst, '\n')
	for _, p := range model.Pools() {
		r, soft, of := share(m, p)
		line := "  " + words.Pad(words.PoolName(p), 9)
		switch {
		case t.Bars && math.IsNaN(r): // an empty bar would say that it is empty
			line += strings.Repeat(" ", barWidth+1)
		case t.Bars:
			line += t.bar(r, soft) + " "
		}
		line += words.PadLeft(used(m, p), words.FigurePairWidth)
		if !math.IsNaN(r) {
			line += words.PadLeft(percent(r), 7)
			if of != "" {
				line += " of " + of
			}
		}
		dst = append(dst, strings.TrimRight(line, " ")+"\n"...)
	}
	for _, h := range holders(s, c, model.DRAM) {
		dst = fmt.Appendf(dst, "  %7d %s %s DRAM %s L1  %s\n", h.p.PID, words.Pad(words.Foreign(h.p.User), 8),
			words.PadLeft(words.FigureColumn(h.mem[model.DRAM]), words.FigureWidth),
			words.PadLeft(words.FigureColumn(h.mem[model.L1]), words.FigureWidth), words.Command(h.p))
	}
	for _, g := range staleSlots(s, c) {
		dst = fmt.Appendf(dst, "  %7d (dead)   %s DRAM, not counted: see ttmon mem --stale\n", g.PID, words.FigureColumn(g.Bytes[model.DRAM]))
	}
	if m.CB != "" && m.Pools[model.CB].Used.Known() {
		dst = t.sentence(dst, "  ", "CB counts: "+words.CBMeaning(m.CB))
	}
	if text := words.InferredL1(m.Inferred); text != "" {
		dst = t.sentence(dst, "  ", "CB and KERNEL "+text)
	}
	for _, why := range words.Reasons(m.Tracking, m.Doubts, s.Source) {
		dst = t.sentence(dst, "  ", why)
	}
	return dst
}

func (t *Text) bar(r float64, soft bool) string {
	bound := model.Exact
	if soft {
		bound = model.Unsure
	}
	return words.SoftBar(r, barWidth, bound)
}

// Line writes a line per chip for a log: always the same fields in the same
// order, "name=value", unknown ones as the reason.
func (t *Text) Line(dst []byte, s *model.Snapshot) []byte {
	if t.trend.samples == 0 {
		dst = t.simulated(dst, s)
	}
	t.trend.addSample(s)
	stamp := s.Time.Local().Format(time.RFC3339)
	for _, c := range chipsOf(s, t.Only) {
		dst = fmt.Appendf(dst, "%s device=%d", stamp, c.dev.Index)
		if n := c.data().Name; n != "" {
			dst = fmt.Appendf(dst, " chip=%s", words.Escape(n))
		}
		for _, p := range model.Pools() {
			dst = fmt.Appendf(dst, " %s=%s", p, strings.ReplaceAll(used(c.mem(), p), " ", ""))
		}
		if r, _, _ := share(c.mem(), model.DRAM); !math.IsNaN(r) {
			dst = fmt.Appendf(dst, " dram_use=%s", strings.ReplaceAll(percent(r), " ", ""))
		}
		if r := t.trend.rate[c.key()][model.DRAM]; r.Known() {
			dst = fmt.Appendf(dst, " dram_change=%s", strings.ReplaceAll(strings.ReplaceAll(speed(r), " ", ""), "−", "-"))
		}
		if list := holders(s, c, model.DRAM); len(list) > 0 {
			dst = fmt.Appendf(dst, " holders=%d", len(list))
		}
		dst = append(dst, '\n')
	}
	return dst
}
