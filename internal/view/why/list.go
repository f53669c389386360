package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/story"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// AppendList appends a table of failures, in the order of the list.
func AppendList(dst []byte, list []failure.Summary, now time.Time, to lines.Options) []byte {
	t := &lines.Table{Columns: []lines.Column{{Head: "Which"}, {Head: "When"}, {Head: "Pool"}, {Head: "Asked", Right: true}, {Head: "Cause"}, {Head: "Program", Rest: true}}}
	p := lines.Printer{Options: to, Buf: dst}
	for i := range list {
		x := &list[i]
		cause := story.Cause(x.Cause)
		if x.Count > 1 {
			cause += fmt.Sprintf(" ×%d", x.Count)
		}
		pool, _ := model.PoolNamed(x.Pool)
		t.Add(words.Escape(x.ID), ago(now, x.Last), words.PoolName(pool), story.Total(x), cause)
	}
	at := t.Layout(p.LayoutWidth())
	for i := range list {
		t.Rows[i].Cells = append(t.Rows[i].Cells, lines.C(listProgram(&list[i], at[len(at)-1].W)))
	}
	p.Table(t)
	return p.Buf
}

// listProgram names the line and the program in so many columns. The pid stays: it
// is what `ttmon why` takes.
func listProgram(x *failure.Summary, width int) string {
	line, pid := "", fmt.Sprintf(" (%d)", x.Process.PID)
	if x.Line != nil {
		line = story.Line(*x.Line) + "  "
	}
	room := min(60, width-words.Width(line)-len(pid))
	if room < 8 && line != "" {
		return strings.TrimSpace(line) + pid // which names the program, too
	}
	return line + words.CommandLine(cmp.Or(x.Process.Command, x.Process.Name), room) + pid
}
