package why

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// AppendList appends a table of failures, in the order of the list.
func AppendList(dst []byte, list []failure.Summary, o Options) []byte {
	if o.Width == 0 {
		o.Width = 100
	}
	rows := [][]string{{"Which", "When", "Pool", "Asked", "Cause", "Program"}}
	for i := range list {
		rows = append(rows, listRow(&list[i], o))
	}
	widths, left := make([]int, len(rows[0])-1), o.Width
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], words.Width(r[i]))
		}
		left -= widths[i] + 2
	}
	for i := range list {
		rows[i+1] = append(rows[i+1], listProgram(&list[i], left))
	}
	p := printer{o: o, dst: dst}
	for n, r := range rows {
		var b strings.Builder
		for i, cell := range r[:len(r)-1] {
			if i == askedColumn {
				cell = words.PadLeft(cell, widths[i])
			}
			b.WriteString(words.Pad(cell, widths[i]) + "  ")
		}
		line := words.Truncate(b.String()+r[len(r)-1], o.Width)
		if n == 0 {
			line = p.bold(line)
		}
		p.line(line)
	}
	return p.dst
}

const askedColumn = 3

func listRow(x *failure.Summary, o Options) []string {
	cause := Cause(x.Cause)
	if x.Count > 1 {
		cause += fmt.Sprintf(" ×%d", x.Count)
	}
	pool, _ := model.PoolNamed(x.Pool)
	return []string{words.Escape(x.ID), ago(o.Now, x.Last), words.PoolName(pool), total(x), cause}
}

// listProgram names the line and the program in so many columns. The pid stays: it
// is what `ttmon why` takes.
func listProgram(x *failure.Summary, width int) string {
	line, pid := "", fmt.Sprintf(" (%d)", x.Process.PID)
	if x.Line != nil {
		line = Line(*x.Line) + "  "
	}
	room := min(60, width-words.Width(line)-len(pid))
	if room < 8 && line != "" {
		return strings.TrimSpace(line) + pid // which names the program, too
	}
	return line + words.CommandLine(cmp.Or(x.Process.Command, x.Process.Name), room) + pid
}

// Sentence is a failure of a list in a few words: "no room for 640 KiB of L1:
// fragmented".
func Sentence(x *failure.Summary) string {
	switch x.Kind {
	case failure.Clash:
		if x.Cause == failure.TooLarge {
			return "circular buffers are larger than L1"
		}
		return "circular buffers clash with a buffer of L1"
	case failure.Trace:
		return fmt.Sprintf("trace region too small: traces need %s", total(x))
	case failure.NoRoom:
	}
	pool, _ := model.PoolNamed(x.Pool)
	return fmt.Sprintf("no room for %s of %s: %s", total(x), words.PoolName(pool), Cause(x.Cause))
}

// total is what was asked for over all banks or, where that is not known, of one.
func total(x *failure.Summary) string {
	switch {
	case x.Kind == failure.Clash:
		return "–"
	case x.Bytes > 0:
		return words.Bytes(x.Bytes)
	}
	return words.Bytes(x.BankBytes) + " a " + bankOf(x.Pool)
}

// Cause is a cause in a word or two.
func Cause(c failure.Cause) string {
	switch c {
	case failure.TooLarge:
		return "too large"
	case failure.Overlap:
		return "clash"
	case failure.RegionTooSmall:
		return "region too small"
	}
	return words.Escape(string(c))
}
