package text

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Stream prints dmon or pmon: a line per device or process and sample, two head
// lines that start with "#" and come again, "-" for what is missing.
type Stream struct {
	Options
	Date, Clock bool // a date and a time before each line
	// HeadEvery is after how many lines the head comes again; 0: never.
	HeadEvery int
	CSV       bool // commas instead of columns; NoHeader and NoUnits belong to it
	NoHeader  bool
	NoUnits   bool

	columns []monColumn
	bounds  []string // of the line that is printed: what is not exact in it
	lines   int      // since the last head
	headed  bool
	devices []metric.Column[*model.Device] // of columns
	apps    []metric.Column[metric.Use]
}

// NewDmon chooses the columns by the letters of their groups; ok is false and
// wrong the letter if there is no such group.
func NewDmon(letters string, o Options) (st *Stream, wrong byte, ok bool) {
	st = &Stream{Options: o, HeadEvery: headEvery}
	if st.columns, wrong, ok = choose(dmonColumns(), letters); !ok {
		return nil, wrong, false
	}
	st.devices = find(metric.Devices(), st.columns)
	return st, 0, true
}

// NewPmon is NewDmon for processes.
func NewPmon(letters string, o Options) (st *Stream, wrong byte, ok bool) {
	st = &Stream{Options: o, HeadEvery: headEvery}
	shown := letters
	if strings.Contains(letters, "u") {
		shown += "b" // nvidia-smi's u is utilization
	}
	if st.columns, wrong, ok = choose(pmonColumns(), shown); !ok {
		return nil, wrong, false
	}
	st.apps = find(metric.Apps(), st.columns)
	return st, 0, true
}

// find looks up the fields of columns; the zero one stands where a column is
// made of something else.
func find[S any](table []metric.Field[S], columns []monColumn) []metric.Column[S] {
	list := make([]metric.Column[S], len(columns))
	for i, col := range columns {
		list[i], _ = metric.Find(table, col.name)
	}
	return list
}

// minCommand is what is shown of a command even where it makes the line longer
// than the terminal.
const minCommand = 8

// headEvery is one screen of a small terminal.
const headEvery = 20

func choose(all []monColumn, letters string) (list []monColumn, wrong byte, ok bool) {
	known := map[byte]bool{}
	for _, col := range all {
		known[col.group] = true
		if strings.IndexByte(letters, col.group) >= 0 {
			list = append(list, col)
		}
	}
	for i := range len(letters) {
		if !known[letters[i]] {
			return nil, letters[i], false
		}
	}
	return list, 0, true
}

// AppendDmon appends a sample of all devices.
func (st *Stream) AppendDmon(dst []byte, s *model.Snapshot) []byte {
	dst = st.head(dst, s, false)
	for i := range s.Devices {
		d := &s.Devices[i]
		dst = st.startLine(dst, s.Time)
		dst = st.field(dst, deviceColumn, number(d.Index))
		for j, col := range st.columns {
			f := st.devices[j]
			dst = st.field(dst, col, value(st, f.Field, f.Get(s, d), col))
		}
		dst = st.bounded(dst)
	}
	return dst
}

// AppendPmon appends a sample of all processes, device by device, and a line
// of "-" for an unused device.
func (st *Stream) AppendPmon(dst []byte, s *model.Snapshot) []byte {
	dst = st.head(dst, s, true)
	for i := range s.Devices {
		index := s.Devices[i].Index
		var any bool
		if dst, any = st.users(dst, s, index); !any {
			dst = st.process(dst, s, number(index), "-", func(int, monColumn) string { return "-" })
		}
	}
	dst, _ = st.users(dst, s, model.NoDevice)
	return dst
}

// users appends the processes that use a device.
func (st *Stream) users(dst []byte, s *model.Snapshot, device int) (_ []byte, any bool) {
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			u := metric.Use{Process: p, Device: &p.Devices[j]}
			if u.Device.Device != device {
				continue
			}
			any = true
			name, pid := "-", "-"
			if device != model.NoDevice {
				name = number(device)
			}
			if p.State != model.Hidden {
				pid = number(p.PID)
			}
			dst = st.process(dst, s, name, pid, func(k int, col monColumn) string {
				switch col.head {
				case "command":
					return words.Command(p)
				case "job":
					return dash(words.Job(p))
				}
				return value(st, st.apps[k].Field, st.apps[k].Get(s, u), col)
			})
		}
	}
	return dst, any
}

func (st *Stream) process(dst []byte, s *model.Snapshot, device, pid string, get func(int, monColumn) string) []byte {
	dst = st.startLine(dst, s.Time)
	dst = st.field(dst, deviceColumn, device)
	dst = st.field(dst, pidColumn, pid)
	for k, col := range st.columns {
		dst = st.field(dst, col, get(k, col))
	}
	return st.bounded(dst)
}

// value is how a stream prints a value: with its mark of doubt, unless bare
// numbers are asked for.
func value[S any](st *Stream, f *metric.Field[S], v metric.Value, col monColumn) string {
	if !v.Known() {
		return "-"
	}
	if f.Kind == metric.Text {
		return words.Escape(v.Text)
	}
	narrow := *f
	narrow.Decimals = col.decimals
	if st.bare() {
		if v.Bound != model.Exact {
			st.bounds = append(st.bounds, col.head+":"+v.Bound.String())
		}
		return narrow.Format(v)
	}
	s := words.Mark(v.Bound) + narrow.Format(v)
	if !st.CSV && words.Width(s) > col.width && strings.Trim(strconv.FormatFloat(v.Num/cmp.Or(f.Per, 1), 'f', col.decimals, 64), "0.") == "" {
		return small(v.Bound, col.decimals)
	}
	return s
}

// bare reports whether values are numbers without marks of doubt, which then stand in a
// column of their own.
func (st *Stream) bare() bool { return st.CSV && st.NoUnits }

// bounded ends a line with the bounds of its values where they are printed bare.
func (st *Stream) bounded(dst []byte) []byte {
	if st.bare() {
		dst = st.field(dst, boundsColumn, cmp.Or(strings.Join(st.bounds, " "), model.Exact.String()))
		st.bounds = st.bounds[:0]
	}
	return st.end(dst)
}

// small is a value that is too small for its column: there is something, so
// that an exact one is not called 0.
func small(b model.Bound, decimals int) string {
	if b != model.Exact {
		return words.Mark(b) + "0"
	}
	return "<" + strconv.FormatFloat(math.Pow10(-decimals), 'f', decimals, 64)
}

func dash(s string) string {
	if s == words.Nothing {
		return "-"
	}
	return s
}

func number(n int) string { return words.Whole(float64(n)) }

// head prints the head if it is time for it: always between two samples,
// never in the middle of one.
func (st *Stream) head(dst []byte, s *model.Snapshot, pid bool) []byte {
	again := st.HeadEvery > 0 && !st.CSV && st.lines >= st.HeadEvery
	if st.NoHeader || st.headed && !again {
		return dst
	}
	if s.Simulated {
		dst = append(dst, "# "+words.Simulated+"\n"...)
	}
	columns := st.all(pid)
	dst = st.headLine(dst, columns, func(col monColumn) string { return col.head })
	if !st.NoUnits {
		dst = st.headLine(dst, columns, func(col monColumn) string { return col.unit })
	}
	st.lines, st.headed = 0, true
	return dst
}

// startLine starts a line, with the date and time if they are wanted.
func (st *Stream) startLine(dst []byte, at time.Time) []byte {
	at = at.In(st.zone())
	st.lines++
	if st.Date {
		dst = st.field(dst, dateColumn, at.Format("20060102"))
	}
	if st.Clock {
		dst = st.field(dst, timeColumn, at.Format("15:04:05"))
	}
	return dst
}

// The columns that are always there, or that -o asks for.
var (
	dateColumn   = monColumn{head: "date", unit: "YYYYMMDD", width: 9}
	timeColumn   = monColumn{head: "time", unit: "HH:MM:SS", width: 9}
	deviceColumn = monColumn{head: "dev", unit: "idx", width: 5}
	pidColumn    = monColumn{head: "pid", unit: "#", width: 8}
	boundsColumn = monColumn{head: "bounds"}
)

// all lists the columns of a line from the left.
func (st *Stream) all(pid bool) []monColumn {
	var list []monColumn
	if st.Date {
		list = append(list, dateColumn)
	}
	if st.Clock {
		list = append(list, timeColumn)
	}
	list = append(list, deviceColumn)
	if pid {
		list = append(list, pidColumn)
	}
	list = append(list, st.columns...)
	if st.bare() {
		list = append(list, boundsColumn)
	}
	return list
}

// headLine prints a line of heads; the "#" takes the first cell of it.
func (st *Stream) headLine(dst []byte, columns []monColumn, text func(monColumn) string) []byte {
	dst = append(dst, '#')
	for i, col := range columns {
		switch {
		case st.CSV && i > 0:
			dst = append(append(dst, ','), text(col)...)
		case st.CSV:
			dst = append(dst, text(col)...)
		case i == 0:
			dst = append(dst, words.PadLeft(text(col), col.width-1)...)
		default:
			dst = append(append(dst, ' '), col.pad(text(col))...)
		}
	}
	return st.end(dst)
}

// field prints one field of a line.
func (st *Stream) field(dst []byte, col monColumn, s string) []byte {
	begun := len(dst) > 0 && dst[len(dst)-1] != '\n'
	if !st.CSV && col.left && col.width > 0 {
		s = words.Truncate(s, col.width)
	}
	if st.ASCII {
		s = cells.ASCII(s)
	}
	if st.CSV {
		if begun {
			dst = append(dst, ',')
		}
		return append(dst, CSVField(s)...)
	}
	if begun {
		dst = append(dst, ' ')
	}
	if st.Width > 0 && col.left && col.width == 0 { // the command: last, and as long as it likes
		line := dst[bytes.LastIndexByte(dst, '\n')+1:]
		s = words.Truncate(s, max(minCommand, st.Width-words.Width(string(line))))
	}
	return append(dst, col.pad(s)...)
}

func (st *Stream) end(dst []byte) []byte {
	for n := len(dst); n > 0 && dst[n-1] == ' '; n-- {
		dst = dst[:n-1]
	}
	return append(dst, '\n')
}

// pad fills a field up to its width, numbers on the left.
func (c *monColumn) pad(s string) string {
	if c.left {
		return words.Pad(s, c.width)
	}
	return words.PadLeft(s, c.width)
}
