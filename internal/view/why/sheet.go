// Package why shows a failed allocation: what was asked for and by which line,
// the bank with the missing piece against its holes, who holds the rest, why the
// request failed and what would have made it fit.
//
// It is a view of records of internal/book/failure, for ttmon why, ttmon run and the page;
// the sentences are those of internal/field/story.
package why

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/story"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Options say how much of a failure is shown, and to whom.
type Options struct {
	Now   time.Time
	Top   int  // holders to list; 0: all
	Stack bool // the whole stack of the request, too
	Spans int  // blocks of the map at most, the largest; 0: all
	// User names the owner; nil: by number.
	User func(uid int) string
	// Brief leaves out who the process is: the caller has said so.
	Brief bool
}

// Page is a failure as the page shows it.
type Page struct {
	Schema string       `json:"schema"`
	ID     string       `json:"id"`
	Sheet  *sheet.Sheet `json:"sheet" ts:"Sheet"`
}

// PageSchema names the JSON of a Page.
const PageSchema = "ttmon.failurepage/2"

// Append appends a failure as text.
func Append(dst []byte, r *failure.Record, o Options, to lines.Options) []byte {
	p := lines.Printer{Options: to, Buf: dst}
	p.Lines(sheet.Lines(Sheet(r, o), p.LayoutWidth())...)
	return p.Buf
}

// Sheet is the story of a failed allocation.
func Sheet(r *failure.Record, o Options) *sheet.Sheet {
	holders := story.Holders(r)
	s := &sheet.Sheet{Title: title(r, o), Status: &sheet.Note{Code: string(r.Verdict.Cause), Text: story.Verdict(r)}}
	s.Parts = append(s.Parts, sheet.Part{Pairs: request(r, o)})
	if m := sheet.MapOf(r.State, story.Numbers(holders), r.Time, o.Spans); m != nil {
		for i := range holders {
			m.Names = append(m.Names, strings.TrimSpace(holders[i].Name()+" "+holders[i].Function+" "+holders[i].Tensor))
		}
		m.Piece = piece(r)
		s.Parts = append(s.Parts, sheet.Part{Map: m})
	}
	s.Parts = append(s.Parts, sheet.Part{Title: "Who held each " + story.Bank(r), Table: holderTable(r, holders, o)})
	fixes := sheet.Part{Title: fixTitle(r)}
	for i, text := range story.Fixes(r, o.Now) {
		fixes.Notes = append(fixes.Notes, sheet.Note{Code: string(r.Verdict.Fixes[i].Kind), Text: text})
	}
	stack := sheet.Part{Title: "Stack of the request", Folded: !o.Stack}
	for _, f := range frames(r.Stack) {
		stack.Notes = append(stack.Notes, sheet.Note{Text: f})
	}
	s.Parts = append(s.Parts, fixes, notes(r), stack)
	return s
}

// title is who failed and at what.
func title(r *failure.Record, o Options) string {
	if o.Brief {
		return story.What(r) + " on " + story.Where(r)
	}
	who := strconv.Itoa(r.Process.PID)
	if o.User != nil && r.Process.UID >= 0 {
		who += ", " + words.Escape(o.User(r.Process.UID))
	}
	return fmt.Sprintf("%s (%s): %s", story.Program(r), who, story.What(r))
}

// request is what was asked for, when and where.
func request(r *failure.Record, o Options) []sheet.Pair {
	at := func(name string, t time.Time, text string) sheet.Pair {
		return sheet.Pair{Name: name, Value: sheet.Value{Text: text, Time: &t}}
	}
	clock := func(t time.Time) string { return t.Local().Format("15:04:05") }
	list := []sheet.Pair{at("when", r.Time, r.Time.Local().Format("2006-01-02 15:04:05")+", "+ago(o.Now, r.Time))}
	if r.Count > 1 {
		list = append(list, sheet.Pair{Name: "times", Value: sheet.Text(strconv.FormatUint(r.Count, 10) + "; this is one of them")}, at("first", r.First, clock(r.First)), at("last", r.Last, clock(r.Last)))
	}
	if !o.Brief {
		list = append(list, sheet.Pair{Name: "where", Value: sheet.Text(story.Where(r))})
	}
	list = append(list, sheet.Pair{Name: "requested", Value: sheet.Text(story.Requested(r))})
	if line, function := story.Requester(r); line != "" {
		by := strings.TrimSpace(line + " " + function)
		if around := around(r); around != "" {
			by += ", " + around
		}
		list = append(list, sheet.Pair{Name: "by", Value: sheet.Text(by)})
	}
	return append(list, sheet.Pair{Name: "free", Value: sheet.Text(story.Free(r))})
}

func ago(now, at time.Time) string {
	if now.Before(at) || now.Sub(at) < time.Second {
		return "just now"
	}
	return words.Duration(now.Sub(at)) + " ago"
}

// around names the lines of the program inside and outside the one that asked.
func around(r *failure.Record) string {
	requester, _ := story.Requester(r)
	var parts, through, callers []string
	to := &through
	for _, f := range callsite.Own(r.Stack) {
		if line := story.Line(f); line == requester && to == &through {
			to = &callers
		} else {
			*to = append(*to, line)
		}
	}
	if len(through) > 0 {
		parts = append(parts, "through "+strings.Join(through, ", "))
	}
	if len(callers) > 0 {
		parts = append(parts, "called from "+strings.Join(callers, ", "))
	}
	return strings.Join(parts, ", ")
}

// holderTable lists who holds the pool, by line.
func holderTable(r *failure.Record, holders []story.Holder, o Options) *sheet.Table {
	t := &sheet.Table{Rows: []sheet.Row{}, Columns: []sheet.Column{
		{Name: "line", Head: "Line", Least: 12, Most: 28},
		{Name: "function", Head: "Function", Most: 24, Rank: 4},
		{Name: "held", Head: "a " + story.Bank(r), Right: true},
		{Name: "share", Bar: true, Rank: 3, Least: lines.MinBar},
		{Name: "blocks", Head: "Blocks", Right: true, Rank: 2},
		{Name: "age", Head: "Oldest", Right: true, Rank: 1},
	}}
	tensors := slices.ContainsFunc(holders, func(h story.Holder) bool { return h.Tensor != "" })
	if tensors {
		t.Columns = append(t.Columns, sheet.Column{Name: "tensor", Head: "For", Rest: true, Rank: 5})
	}
	shown := holders
	if o.Top > 0 {
		shown = holders[:min(len(holders), o.Top)]
	}
	for i := range shown {
		h := &shown[i]
		bytes, blocks := float64(h.Bytes), float64(h.Blocks)
		age := sheet.Value{Text: words.Nothing, Gone: true}
		if !h.Oldest.IsZero() {
			age = sheet.Text(words.Duration(r.Time.Sub(h.Oldest)))
		}
		row := sheet.Row{Color: h.Number, Cells: []sheet.Value{
			{Text: h.Name(), Note: strings.Join(frames(h.Stack), "\n")}, {Text: h.Function}, {Text: words.Bytes(h.Bytes), N: &bytes}, {N: &bytes}, {Text: strconv.Itoa(h.Blocks), N: &blocks}, age,
		}}
		if tensors {
			row.Cells = append(row.Cells, sheet.Text(h.Tensor))
		}
		t.Rows = append(t.Rows, row)
	}
	if n := len(holders) - len(shown); n > 0 {
		var rest uint64
		for i := range holders[len(shown):] {
			rest += holders[len(shown)+i].Bytes
		}
		t.More = fmt.Sprintf("and %d more lines with %s", n, words.Bytes(rest))
	}
	return t
}

func fixTitle(r *failure.Record) string {
	switch r.Kind {
	case failure.Clash:
		return "They would not have overlapped"
	case failure.Trace:
		return "What would have made all traces fit"
	case failure.NoRoom:
	}
	return "What would have made it fit"
}

// notes say what is not known, and what others held.
func notes(r *failure.Record) (p sheet.Part) {
	p.Title = "Notes"
	if r.Verdict.Cause != failure.Unknown {
		for _, d := range r.Doubts {
			if text := story.Doubt(d); text != "" {
				p.Notes = append(p.Notes, sheet.Note{Code: string(d), Text: text})
			}
		}
	}
	for _, text := range story.Others(r) {
		p.Notes = append(p.Notes, sheet.Note{Code: "others", Text: text})
	}
	return p
}

// frames are the lines of a stack, with the whole paths.
func frames(stack []ledgerfile.Frame) []string {
	list := []string{}
	for _, f := range stack {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s%s %s", words.Escape(f.File), position(f), words.Escape(f.Function))))
	}
	return list
}

// piece is what was asked for of a bank, where it is drawn, and what is written
// beside it: at the largest hole, circular buffers at the low end.
func piece(r *failure.Record) *sheet.Piece {
	if r.Kind == failure.Clash {
		return &sheet.Piece{At: r.State.Base, Size: r.Clash.Reach - min(r.Clash.Base, r.Clash.Reach), Label: "circular buffers"}
	}
	largest := blocks.Range{Addr: r.State.Base}
	for h := range r.State.Holes() {
		if h.Size > largest.Size {
			largest = h
		}
	}
	if r.Kind == failure.Trace {
		return &sheet.Piece{At: largest.Addr, Size: r.Region.Bank, Label: "the trace that was refused"}
	}
	return &sheet.Piece{At: largest.Addr, Size: r.Need(), Label: "requested: " + words.Bytes(r.Need())}
}

// position is where in its file a frame is: its line, or an offset where it has
// none.
func position(f ledgerfile.Frame) string {
	if f.Line == 0 && f.Offset != 0 {
		return fmt.Sprintf("+%#x", f.Offset)
	}
	return ":" + strconv.Itoa(f.Line)
}
