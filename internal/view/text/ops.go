package text

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendOps appends the operations that chips work on, by the time they take.
func AppendOps(dst []byte, s *model.Snapshot, x metric.OpChoice, o Options) []byte {
	p := newPrinter(dst, o)
	p.opsTitle(s)
	rows := x.Rows(s)
	if len(rows) == 0 {
		p.Newline()
		p.Line(" "+NoOperation(x), cells.Faint)
		p.unknown(s)
		return p.Buf
	}
	t := sheet.TableOf(metric.Operations(), s, rows).Lines()
	t.Ruled, t.Indent = true, 1
	p.Table(t)
	p.stuck(s)
	p.unknown(s)
	return p.Buf
}

// opsTitle is a line with how busy each device is.
func (p *printer) opsTitle(s *model.Snapshot) {
	parts := []string{words.Escape(s.Host.Name)}
	for i := range s.Devices {
		d := &s.Devices[i]
		parts = append(parts, strconv.Itoa(d.Index)+" busy "+words.Busy(&d.Work))
	}
	if s.Simulated {
		parts = append(parts, words.Simulated)
	}
	line := " " + strings.Join(parts, "   ")
	if p.Width > 0 {
		line = words.Truncate(line, p.Width)
	}
	p.Line(line, 0)
}

// NoOperation says that there is nothing to show.
func NoOperation(x metric.OpChoice) string {
	switch {
	case x.Filter != "":
		return "no operation has " + strconv.Quote(words.Escape(x.Filter)) + " in its name"
	case x.PID != 0:
		return "process " + strconv.Itoa(x.PID) + " reports no programs"
	}
	return "no process reports programs"
}

// unknown ends the screen with why it is not known how busy devices are.
func (p *printer) unknown(s *model.Snapshot) {
	for i := range s.Devices {
		if d := &s.Devices[i]; !d.Work.Measured() && d.Work.Cause != "" {
			p.Sentence("device "+strconv.Itoa(d.Index)+": busy unknown: "+words.WorkCause(d.Work.Cause), cells.Faint)
		}
	}
}

// stuck ends the table with the processes that may be stuck.
func (p *printer) stuck(s *model.Snapshot) {
	for _, n := range StuckNotes(s) {
		p.Sentence(n.Text, cells.OfNote(n.Level))
	}
}

// Note is a sentence below a table, and how bad it is.
type Note struct {
	Text  string
	Level model.Level
}

// StuckNotes are the processes that may be stuck, each with its evidence.
func StuckNotes(s *model.Snapshot) (list []Note) {
	for _, x := range assess.Of(s).Conditions() {
		if x.Kind != model.ConditionStuck {
			continue
		}
		text := words.Kind(x.Kind) + "  " + words.Affected(s, &x) + ": " + words.Facts(s, &x)
		if last := lastOperation(s, x.Process); last != "" {
			text += "; last: " + last
		}
		list = append(list, Note{text, x.Level})
	}
	return list
}

// lastOperation is the last that a process had completed.
func lastOperation(s *model.Snapshot, id model.ProcessID) (name string) {
	var at time.Time
	for i := range s.Processes {
		if s.Processes[i].ID() != id {
			continue
		}
		for k := range s.Processes[i].Work.Chips {
			if c := &s.Processes[i].Work.Chips[k]; c.LastRecord.After(at) {
				at, name = c.LastRecord, words.Escape(c.LastName)
			}
		}
	}
	return name
}

// opJSON is an operation for scripts.
type opJSON struct {
	Operation string   `json:"operation"`
	Others    int      `json:"others,omitempty"`
	Share     *float64 `json:"share_ratio"`
	Bound     string   `json:"share_bound,omitempty"` // of share_ratio and calls_per_s; empty where there is none
	Rate      *float64 `json:"calls_per_s"`
	Calls     uint64   `json:"calls"`
	Time      uint64   `json:"time_ns"`
	Totals    string   `json:"totals_bound"` // of calls and time_ns
	Mean      uint64   `json:"mean_ns"`
	Longest   uint64   `json:"longest_ns"`
	Device    *int     `json:"device"`
	Chip      string   `json:"chip,omitempty"`
	PID       int      `json:"pid"`
	Process   string   `json:"process"`
}

// AppendOpsJSON appends the operations as one line of JSON.
func AppendOpsJSON(dst []byte, s *model.Snapshot, x metric.OpChoice) []byte {
	value := func(r model.Reading[float64]) *float64 {
		if v, ok := r.Get(); ok {
			return &v
		}
		return nil
	}
	list := []opJSON{}
	for _, o := range x.Rows(s) {
		if o.Late {
			continue // it is late_ratio of the snapshot
		}
		j := opJSON{
			Operation: o.Name, Others: o.Others, Share: value(o.Share), Rate: value(o.Rate), Calls: o.Calls, Time: o.Time, Totals: o.Chip.Work.TotalBound.String(), Mean: o.Mean(), Longest: o.Longest,
			Chip: o.Chip.Chip, PID: o.Process.PID, Process: words.Program(o.Process),
		}
		if o.Share.Known() {
			j.Bound = o.Bound().String()
		}
		if o.Chip.Device != model.NoDevice {
			j.Device = &o.Chip.Device
		}
		list = append(list, j)
	}
	b, err := json.Marshal(map[string]any{"schema": "ttmon.operations/1", "time": s.Time.UTC().Format(time.RFC3339Nano), "simulated": s.Simulated, "operations": list})
	if err != nil {
		panic("BUG: operations are not JSON: " + err.Error())
	}
	return append(append(dst, b...), '\n')
}
