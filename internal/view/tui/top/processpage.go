package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/words"
)

// processPage is everything known about one process.
type processPage struct {
	sheet  widget.Sheet
	target act.Target
	last   row // as it was when last seen
	seen   time.Time
	gone   bool
	more   *act.Inspected // nil: not answered yet
}

func (s *State) openProcess() []tui.Effect {
	r := s.proc.selected()
	if r == nil || r.parent {
		return nil
	}
	p := &processPage{target: act.Target{PID: r.p.PID, StartTicks: r.p.StartTicks, Name: r.command()}, last: *r, seen: s.shown.Time}
	s.page = p
	return []tui.Effect{act.Inspect{Target: p.target}}
}

func (p *processPage) keys() []binding {
	return []binding{
		{keys: []tui.Key{"f9"}, foot: "Kill", help: "send it a signal", do: func(s *State) []tui.Effect {
			s.proc.sel, s.proc.tagged = id{p.target.PID, p.target.StartTicks}, nil
			s.proc.restoreSelection()
			if s.proc.sel.pid != p.target.PID {
				s.showMessage(cells.Warn, "%d is gone", p.target.PID)
				return nil
			}
			return s.openKill()
		}},
		{keys: []tui.Key{"r"}, foot: "Reload", help: "read environment and buffers again", do: func(*State) []tui.Effect { return []tui.Effect{act.Inspect{Target: p.target}} }},
	}
}

func (p *processPage) key(_ *State, k tui.Key) []tui.Effect {
	if m, ok := widget.MotionOf(k); ok {
		p.sheet.Move(m)
	}
	return nil
}

func (p *processPage) inspected(ev act.Inspected) {
	if ev.Target.PID == p.target.PID && ev.Target.StartTicks == p.target.StartTicks {
		p.more = &ev
	}
}

// sample follows the process in the newest snapshot.
func (p *processPage) sample(s *State) []tui.Effect {
	if s.shown == nil {
		return nil
	}
	i := slices.IndexFunc(s.shown.Processes, func(q model.Process) bool {
		return q.PID == p.target.PID && q.StartTicks == p.target.StartTicks
	})
	if p.gone = i < 0; !p.gone {
		p.last, p.seen = row{p: &s.shown.Processes[i]}, s.shown.Time
	}
	return nil
}

func (p *processPage) draw(s *State, area cells.Area) {
	head, body := area.Top(1)
	head.Put(1, 0, fmt.Sprintf("Process %d", p.target.PID), cells.Strong)
	if p.gone {
		head.Put(20, 0, "gone: this is how it was seen last", cells.Bad)
	}
	body = s.drawProcessCharts(body, model.ProcessID{PID: p.target.PID, StartTicks: p.target.StartTicks})
	p.sheet.Draw(&s.hits, body, p.entries(s.shown))
}

func (p *processPage) entries(snap *model.Snapshot) []widget.Entry {
	q := p.last.p
	out := []widget.Entry{{Heading: "Process"}}
	fields, values := metric.ReportProcess(snap, q)
	for i, f := range fields {
		e := widget.Entry{Name: f.Title, Value: f.Full(values[i])}
		if !values[i].Known() {
			e.Style = cells.Faint
		}
		out = append(out, e)
	}
	if q.State != model.Running {
		out = append(out, widget.Entry{Name: "State", Value: string(q.State), Style: cells.Warn})
	}
	out = append(out, widget.Entry{Heading: "Memory"})
	out = append(out, split(snap, q)...)
	return append(out, p.inspectedEntries()...)
}

// poolWidth is the width of a column of the memory table.
const poolWidth = words.FigureWidth + 1

// split shows the memory by device and, where there are several, by chip.
func split(snap *model.Snapshot, q *model.Process) []widget.Entry {
	header := ""
	for _, p := range model.Pools() {
		header += words.PadLeft(words.PoolName(p), poolWidth)
	}
	out := []widget.Entry{{Value: header, Style: cells.Faint, Table: true}}
	for i := range q.Devices {
		u := &q.Devices[i]
		name := fmt.Sprintf("device %d", u.Device)
		if u.Device == model.NoDevice {
			name = "no device here"
		}
		out = append(out, widget.Entry{Name: name, Value: poolLine(u.Memory, u.Tracking), Table: true})
		if len(u.Chips) > 1 {
			for c := range u.Chips {
				out = append(out, widget.Entry{Name: "  chip " + chipName(snap, u, c), Value: poolLine(u.Chips[c].Memory, u.Tracking), Style: cells.Faint, Table: true})
			}
		}
		out = append(out, widget.Entry{Value: useNote(u), Style: cells.Faint})
		for _, why := range words.UseReasons(q, u, snap.Source) {
			out = append(out, widget.Entry{Name: "Note", Value: why, Style: cells.Warn})
		}
	}
	return out
}

func poolLine(b model.PoolBytes, tracking model.Tracking) string {
	s := ""
	for _, p := range model.Pools() {
		s += words.PadLeft(words.FigureColumnOr(b[p], tracking), poolWidth)
	}
	return s
}

// chipName is how a chip is called on its board, or its id.
func chipName(snap *model.Snapshot, u *model.DeviceUse, c int) string {
	if d := snap.Device(u.Device); d != nil {
		for i := range d.Chips {
			if d.Chips[i].ID.Known() && d.Chips[i].ID.V == u.Chips[c].ChipID && d.Chips[i].Name != "" {
				return words.Escape(d.Chips[i].Name)
			}
		}
	}
	return strconv.FormatUint(u.Chips[c].ChipID, 10)
}

// useNote says how a device is held and where the figures come from.
func useNote(u *model.DeviceUse) string {
	var parts []string
	if u.Source != "" {
		parts = append(parts, "figures from "+words.Source(u.Source))
	}
	if u.OpenFDs.Known() {
		parts = append(parts, count(u.OpenFDs.V, "open descriptor", "open descriptors"))
	}
	if u.Inherited && len(u.Doubts) == 0 {
		parts = append(parts, "inherited from the process that opened it")
	}
	return strings.Join(parts, "; ")
}

// inspectedEntries is what is not in a snapshot: buffers and environment.
func (p *processPage) inspectedEntries() []widget.Entry {
	out := []widget.Entry{{Heading: "Buffers"}}
	switch m := p.more; {
	case m == nil:
		return append(out, widget.Entry{Value: "…"})
	case m.BufferErr != nil:
		out = append(out, widget.Entry{Value: words.Escape(m.BufferErr.Error()), Style: cells.Faint})
	case len(m.Buffers) == 0:
		out = append(out, widget.Entry{Value: "none"})
	default:
		out = append(out, buffers(m.Buffers)...)
	}
	out = append(out, widget.Entry{Heading: "Environment that matters to Tenstorrent"})
	if p.more.EnvErr != nil {
		return append(out, widget.Entry{Value: words.Escape(p.more.EnvErr.Error()), Style: cells.Faint})
	}
	n := len(out)
	for _, kv := range p.more.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && relevant(name) {
			out = append(out, widget.Entry{Name: words.Escape(name), Value: words.Escape(value)})
			if words.Width(name) > 14 {
				out[len(out)-1] = widget.Entry{Value: words.Escape(kv)}
			}
		}
	}
	if len(out) == n {
		out = append(out, widget.Entry{Value: "none is set", Style: cells.Faint})
	}
	return out
}

// relevant reports whether a variable matters to Tenstorrent's software.
func relevant(name string) bool {
	for _, prefix := range []string{"TT_", "TTNN_", "ARCH_NAME", "WH_ARCH_YAML", "MESH_DEVICE", "TRACY_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// buffers lists allocations, the largest first.
func buffers(list []act.Buffer) []widget.Entry {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b act.Buffer) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var out []widget.Entry
	for _, b := range list {
		where := "no device"
		if b.Device != model.NoDevice {
			where = fmt.Sprintf("device %d", b.Device)
		}
		if b.Chip != "" {
			where += " " + words.Escape(b.Chip)
		}
		out = append(out, widget.Entry{
			Name:  words.Bytes(b.Bytes),
			Value: fmt.Sprintf("%-8s %-10s %6s old  %s", words.Escape(b.Pool), where, words.Duration(b.Age), words.Escape(b.Note)),
		})
	}
	return out
}
