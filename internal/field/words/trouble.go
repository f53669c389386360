package words

import (
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// Trouble is a row of trouble in words: the same wherever it is shown. Every
// text is safe for a terminal.
type Trouble struct {
	Level    model.Level
	Kind     model.ConditionKind
	Devices  []int  // kernel indexes; empty: the host
	Name     string // "9", "0-3", "host"
	Board    string // that the devices are; empty where they differ
	What     string // "throttled by heat"
	Since    time.Time
	Held     string // "12 min"; empty where that is not known
	Facts    string
	Affected string
	Remedy   string
	Alerts   []string // names of the rules that fire about it
}

// Troubles lists what is wrong with a host, the worst first: a row for each thing that
// is wrong with a device, or with several devices in the same way.
func Troubles(s *model.Snapshot) []Trouble {
	var list []Trouble
	for _, r := range assess.Of(s).Rows() {
		for i := range r.Conditions {
			list = append(list, trouble(s, &r, i))
		}
	}
	return list
}

// trouble is one of the conditions of a row. Who is affected is said with the first.
func trouble(s *model.Snapshot, r *assess.Row, i int) Trouble {
	c := &r.Conditions[i]
	t := Trouble{
		Level: c.Level, Kind: c.Kind, Devices: r.Devices, Name: "host", What: What(c), Since: c.Since, Held: Held(s, c),
		Facts: Facts(s, c), Affected: Nothing, Remedy: Remedy(s, c, r.Devices),
	}
	if i == 0 {
		t.Affected = Affected(s, c)
	}
	for _, a := range r.Alerts {
		if a.Condition == c.Kind {
			t.Alerts = appendNew(t.Alerts, Escape(a.Name))
		}
	}
	if len(r.Devices) > 0 {
		t.Name = Ranges(r.Devices)
	}
	for i, index := range r.Devices {
		board := boardOf(s.Device(index))
		if i > 0 && board != t.Board {
			t.Board = ""
			break
		}
		t.Board = board
	}
	return t
}

func boardOf(d *model.Device) string {
	if d.Board.Known() {
		return Foreign(d.Board)
	}
	return string(d.Arch)
}

// Sentence is the row in one line, without its devices: "throttled by heat for
// 12 min: 80 °C (limit 75), 746 of 1000 MHz; serve.py (root) → check the fans".
func (t *Trouble) Sentence() string {
	text := t.marked()
	if t.Held != "" {
		text += " for " + t.Held
	}
	if t.Facts != "" {
		text += ": " + t.Facts
	}
	if t.Affected != Nothing {
		text += "; " + t.Affected
	}
	if t.Remedy != "" {
		text += " → " + t.Remedy
	}
	return text
}

// TroubleRows lays rows of trouble out in columns, one line each, for a screen
// of a width. Where room is short the board goes first, then who is affected, then
// the facts: what to do is never cut.
func TroubleRows(list []Trouble, width int) []string {
	columns := troubleColumns(list, width)
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = columns.line(&list[i], width)
	}
	return lines
}

// TroubleLines lays rows of trouble out in columns for a report of a width, in as many
// lines each as it takes to cut nothing; width 0: in one.
func TroubleLines(list []Trouble, width int) [][]string {
	columns := troubleColumns(list, width)
	lines := make([][]string, len(list))
	for i := range list {
		lines[i] = columns.lines(&list[i], width)
	}
	return lines
}

// troubleWidths are the widths of the columns of a table of trouble.
type troubleWidths struct{ name, board, what, held, facts int }

const (
	narrowTrouble = 100 // terminals below this have no room for boards
	factsColumn   = 40  // facts longer than this do not widen the column
	fewFacts      = 12  // less of the facts than this says nothing
)

func troubleColumns(list []Trouble, width int) troubleWidths {
	var w troubleWidths
	for i := range list {
		t := &list[i]
		w.name, w.board, w.what = max(w.name, Width(t.Name)), max(w.board, Width(t.Board)), max(w.what, Width(t.marked()))
		w.held, w.facts = max(w.held, Width(t.Held)), max(w.facts, min(Width(t.Facts), factsColumn))
	}
	if width > 0 && width < narrowTrouble {
		w.board = 0
	}
	return w
}

// head is what stands before the facts.
func (w *troubleWidths) head(t *Trouble) string {
	text := PadLeft(t.Name, w.name)
	for _, c := range []struct {
		text  string
		width int
	}{{t.Board, w.board}, {t.marked(), w.what}, {t.Held, w.held}} {
		if c.width > 0 {
			text += "  " + Pad(c.text, c.width)
		}
	}
	return text
}

// full is a row in one line; affected says whether with who is affected.
func (w *troubleWidths) full(t *Trouble, affected bool) string {
	text := w.head(t)
	if w.facts > 0 {
		text += "  " + Pad(t.Facts, w.facts)
	}
	if affected && t.Affected != Nothing {
		text += "  " + t.Affected
	}
	return strings.TrimRight(text+t.todo(), " ")
}

// line is a row in one line of a width.
func (w *troubleWidths) line(t *Trouble, width int) string {
	for _, affected := range []bool{true, false} {
		if text := w.full(t, affected); width == 0 || Width(text) <= width {
			return text
		}
	}
	todo := t.todo()
	head := strings.TrimRight(w.head(t), " ")
	if room := width - Width(w.head(t)) - len("  ") - Width(todo); room >= fewFacts {
		return w.head(t) + "  " + Truncate(t.Facts, room) + todo
	}
	if Width(head+todo) > width && len(t.Devices) > 0 {
		todo = "  → ttmon smi -q -i " + strings.ReplaceAll(t.Name, " ", "") // where the remedy is in full
	}
	return Truncate(head+todo, width)
}

// lines is a row in as many lines of a width as it takes.
func (w *troubleWidths) lines(t *Trouble, width int) []string {
	if text := w.full(t, true); width == 0 || Width(text) <= width {
		return []string{text}
	}
	head := w.head(t)
	indent := strings.Repeat(" ", w.name+len("  "))
	var lines []string
	for _, part := range Wrap(t.Facts, max(width-Width(head)-len("  "), factsColumn/2)) {
		if len(lines) == 0 {
			part = head + "  " + part
		} else {
			part = strings.Repeat(" ", Width(head)+len("  ")) + part
		}
		lines = append(lines, part)
	}
	if len(lines) == 0 {
		lines = []string{strings.TrimRight(head, " ")}
	}
	if last := &lines[len(lines)-1]; t.Affected != Nothing && Width(*last)+len("  ")+Width(t.Affected) <= width {
		*last += "  " + t.Affected
	} else if t.Affected != Nothing {
		lines = append(lines, indent+t.Affected)
	}
	for i, part := range Wrap(strings.TrimSpace(t.todo()), max(width-len(indent)-len("  "), factsColumn)) {
		if i > 0 {
			part = "  " + part // below what the arrow points at
		}
		lines = append(lines, indent+part)
	}
	return lines
}

// todo is the end of a line: what to do.
func (t *Trouble) todo() string {
	if t.Remedy == "" {
		return ""
	}
	return "  → " + t.Remedy
}

// marked is what is wrong, with the mark of an alert.
func (t *Trouble) marked() string {
	if len(t.Alerts) > 0 {
		return t.What + " (alert)"
	}
	return t.What
}

// TroubleSummary is all trouble in one line, for where there is no room for
// rows: "device 0 throttled and slow link, 1 hot".
func TroubleSummary(list []Trouble) string {
	var names, texts []string // of each row of devices
	between := ", "
	named := false
	for i := range list {
		t := &list[i]
		if n := len(names); n > 0 && names[n-1] == t.Name {
			texts[n-1] += " and " + Kind(t.Kind)
			continue
		}
		text := t.Name + " " + Kind(t.Kind)
		if len(t.Devices) > 0 && !named {
			named = true
			text = deviceOrDevices(len(t.Devices)) + " " + text
		}
		if strings.Contains(t.Name, ",") {
			between = "; "
		}
		names, texts = append(names, t.Name), append(texts, text)
	}
	return strings.Join(texts, between)
}

func deviceOrDevices(n int) string {
	if n == 1 {
		return "device"
	}
	return "devices"
}
