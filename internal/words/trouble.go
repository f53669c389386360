package words

import (
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/assess"
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

// Troubles lists what is wrong with a host, the worst first, a row for each
// device.
func Troubles(s *model.Snapshot) []Trouble {
	var list []Trouble
	for _, r := range assess.Of(s).Rows() {
		list = append(list, trouble(s, &r))
	}
	return list
}

func trouble(s *model.Snapshot, r *assess.Row) Trouble {
	c := &r.Conditions[0]
	t := Trouble{
		Level: c.Level, Kind: c.Kind, Devices: r.Devices, Name: "host", What: What(c), Since: c.Since, Held: Held(s, c),
		Facts: Facts(s, c), Affected: Affected(s, c), Remedy: Remedy(s, c, r.Devices),
	}
	for i := range r.Conditions[1:] { // what else is wrong with it
		other := &r.Conditions[1+i]
		t.Facts += "; also " + What(other)
	}
	for _, a := range r.Alerts {
		t.Alerts = appendNew(t.Alerts, Escape(a.Name))
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

// TroubleLines lays rows of trouble out in columns, one line each, for a
// terminal of a width; 0: as wide as it takes. Where room is short the board
// goes first, then, line by line, who is affected and what to do.
func TroubleLines(list []Trouble, width int) []string {
	var name, board, what, held, facts int
	for i := range list {
		t := &list[i]
		name, board, what = max(name, Width(t.Name)), max(board, Width(t.Board)), max(what, Width(t.marked()))
		held, facts = max(held, Width(t.Held)), max(facts, min(Width(t.Facts), factsColumn))
	}
	if width > 0 && width < narrowTrouble {
		board = 0
	}
	lines := make([]string, len(list))
	for i := range list {
		t := &list[i]
		text := PadLeft(t.Name, name)
		for _, c := range []struct {
			text  string
			width int
		}{{t.Board, board}, {t.marked(), what}, {t.Held, held}, {t.Facts, facts}} {
			if c.width > 0 {
				text += "  " + Pad(c.text, c.width)
			}
		}
		lines[i] = t.rest(text, width)
	}
	return lines
}

const (
	narrowTrouble = 100 // terminals below this have no room for boards
	factsColumn   = 40  // facts longer than this do not widen the column
)

// marked is what is wrong, with the mark of an alert.
func (t *Trouble) marked() string {
	if len(t.Alerts) > 0 {
		return t.What + " (alert)"
	}
	return t.What
}

// rest ends a line with who is affected and what to do, as far as it fits.
func (t *Trouble) rest(line string, width int) string {
	affected, remedy := "", ""
	if t.Affected != Nothing {
		affected = "  " + t.Affected
	}
	if t.Remedy != "" {
		remedy = "  → " + t.Remedy
	}
	brief := ""
	if len(t.Devices) > 0 && remedy != "" { // where the remedy is in full
		brief = "  → ttmon smi -q -i " + t.Name
	}
	for _, tail := range []string{affected + remedy, remedy, brief} {
		if whole := strings.TrimRight(line+tail, " "); width == 0 || Width(whole) <= width {
			return whole
		}
	}
	return Truncate(strings.TrimRight(line, " "), width)
}

// TroubleSummary is all trouble in one line, for where there is no room for
// rows: "3 devices in trouble: 13 hung, 9 throttled, 20 slow link".
func TroubleSummary(list []Trouble) string {
	devices := 0
	var parts []string
	for i := range list {
		devices += len(list[i].Devices)
		parts = append(parts, list[i].Name+" "+Kind(list[i].Kind))
	}
	if devices == 0 {
		return strings.Join(parts, ", ")
	}
	return plural(devices, "device in trouble: ", "devices in trouble: ") + strings.Join(parts, ", ")
}
