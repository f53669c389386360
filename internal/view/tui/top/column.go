package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/filter"
	"github.com/ttmon/ttmon/internal/view/words"
)

// column is a column of the process table, which is at the same time a field
// of the filter.
type column struct {
	name    string // in the configuration, the sort menu and the filter
	aliases []string
	title   string
	help    string
	width   int // 0: the rest of the line
	left    bool
	rank    int // order in which the usual columns go when room is short; 0: not a usual one
	kind    filter.Kind
	text    func(*row) (string, cells.Style)
	value   func(*row) filter.Value
}

func texts(s ...string) filter.Value           { return filter.Value{Texts: s} }
func numbers(n ...float64) filter.Value        { return filter.Value{Numbers: n} }
func plainText(s string) (string, cells.Style) { return s, cells.Text }

func of[T any](r model.Reading[T], f func(T) float64) filter.Value {
	if v, ok := r.Get(); ok {
		return numbers(f(v))
	}
	return filter.Value{}
}

func ofText(r model.Reading[string]) filter.Value {
	if v, ok := r.Get(); ok {
		return texts(words.Escape(v))
	}
	return filter.Value{}
}

// orNothing keeps an empty text from being a value.
func orNothing(s string) filter.Value {
	if s == "" || s == words.Nothing {
		return filter.Value{}
	}
	return texts(s)
}

// tableColumns lists all columns. The last ranks go first when room is short.
func tableColumns() []column {
	list := []column{
		{
			name: "pid", title: "PID", help: "process id", width: 8, rank: 1, kind: filter.Number,
			text: func(r *row) (string, cells.Style) {
				if r.p.State == model.Hidden {
					return "?", cells.Faint
				}
				return plainText(strconv.Itoa(r.p.PID))
			},
			value: func(r *row) filter.Value { return numbers(float64(r.p.PID)) },
		},
		{
			name: "user", title: "User", help: "owner", width: 8, left: true, rank: 3,
			text:  func(r *row) (string, cells.Style) { return plainText(missing(r, words.Foreign(r.p.User))) },
			value: func(r *row) filter.Value { return ofText(r.p.User) },
		},
		{
			name: "device", aliases: []string{"dev", "gpu", "chip"}, title: "Dev", help: "devices it uses", width: 7, left: true, rank: 2, kind: filter.Number,
			text: func(r *row) (string, cells.Style) { return plainText(deviceList(r.devices, 7)) },
			value: func(r *row) filter.Value {
				var v filter.Value
				for _, d := range r.devices {
					v.Numbers = append(v.Numbers, float64(d))
				}
				return v
			},
		},
	}
	for _, p := range model.Pools() {
		rank := map[model.Pool]int{model.DRAM: 1, model.L1: 4, model.Trace: 9, model.CB: 10}[p]
		list = append(list, column{
			name: p.String(), title: words.PoolName(p), help: "allocated in " + words.PoolName(p), width: 9, rank: rank, kind: filter.Bytes,
			text: func(r *row) (string, cells.Style) {
				held := r.mem[p]
				if !held.Known() {
					return missing(r, words.FigureOr(held, r.p.Tracking())), cells.Faint
				}
				return plainText(words.FigureColumn(held))
			},
			value: func(r *row) filter.Value {
				n, _, known := r.mem[p].Best()
				if !known {
					return filter.Value{}
				}
				return numbers(float64(n))
			},
		})
	}
	list = append(list, column{
		name: "share", title: "DRAM%", help: "share of its devices' DRAM, in percent", width: 6, rank: 11, kind: filter.Number,
		text: func(r *row) (string, cells.Style) {
			v, bound, ok := r.share()
			if !ok {
				return words.Nothing, cells.Faint
			}
			return plainText(words.Mark(bound) + words.Whole(100*v) + "%")
		},
		value: func(r *row) filter.Value {
			v, _, ok := r.share()
			if !ok {
				return filter.Value{}
			}
			return numbers(100 * v)
		},
	})
	list = append(list, column{
		name: "busy", title: "Busy", help: "share of the time in which one of its programs ran, on the busiest of its chips, in percent", width: 6, rank: 12, kind: filter.Number,
		text: func(r *row) (string, cells.Style) {
			w := r.p.Work.Busiest()
			if w == nil {
				return words.Nothing, cells.Faint
			}
			return plainText(words.Busy(&w.Work))
		},
		value: func(r *row) filter.Value {
			w := r.p.Work.Busiest()
			if w == nil {
				return filter.Value{}
			}
			return of(w.Work.Busy, func(v float64) float64 { return 100 * v })
		},
	})
	return append(list, hostColumns()...)
}

// hostColumns are about the process on its host.
func hostColumns() []column {
	return []column{
		{
			name: "cpu", title: "CPU", help: "share of one core", width: 6, rank: 5, kind: filter.Number,
			text:  func(r *row) (string, cells.Style) { return plainText(missing(r, words.Reading(r.p.CPU, words.CPU))) },
			value: func(r *row) filter.Value { return of(r.p.CPU, func(v float64) float64 { return v }) },
		},
		{
			name: "rss", aliases: []string{"mem"}, title: "RSS", help: "memory of the host", width: 8, rank: 7, kind: filter.Bytes,
			text: func(r *row) (string, cells.Style) {
				return plainText(missing(r, words.Reading(r.p.RSS, words.BytesColumn)))
			},
			value: func(r *row) filter.Value { return of(r.p.RSS, func(v uint64) float64 { return float64(v) }) },
		},
		{
			name: "threads", title: "Thr", help: "threads", width: 4, kind: filter.Number,
			text: func(r *row) (string, cells.Style) {
				return plainText(missing(r, words.Reading(r.p.Threads, strconv.Itoa)))
			},
			value: func(r *row) filter.Value { return of(r.p.Threads, func(v int) float64 { return float64(v) }) },
		},
		{
			name: "time", title: "Time", help: "how long it has been running", width: 6, rank: 6, kind: filter.Seconds,
			text: func(r *row) (string, cells.Style) {
				if d, ok := r.age(); ok {
					return plainText(words.Duration(d))
				}
				return plainText(words.Nothing)
			},
			value: func(r *row) filter.Value {
				if d, ok := r.age(); ok {
					return numbers(d.Seconds())
				}
				return filter.Value{}
			},
		},
		{
			name: "job", title: "Job", help: "batch job, pod, container or unit", width: 20, left: true, rank: 8,
			text:  func(r *row) (string, cells.Style) { return plainText(words.Job(r.p)) },
			value: func(r *row) filter.Value { return orNothing(words.Job(r.p)) },
		},
		{
			name: "container", title: "Container", help: "container it runs in", width: 14, left: true,
			text: func(r *row) (string, cells.Style) {
				return plainText(cmp.Or(words.Escape(r.p.Container.ID), words.Nothing))
			},
			value: func(r *row) filter.Value { return orNothing(words.Escape(r.p.Container.ID)) },
		},
		{
			name: "unit", title: "Unit", help: "systemd unit", width: 20, left: true,
			text: func(r *row) (string, cells.Style) {
				return plainText(cmp.Or(words.Escape(r.p.SystemdUnit), words.Nothing))
			},
			value: func(r *row) filter.Value { return orNothing(words.Escape(r.p.SystemdUnit)) },
		},
		{
			name: "pod", title: "Pod", help: "Kubernetes pod", width: 20, left: true,
			text:  func(r *row) (string, cells.Style) { return plainText(cmp.Or(pod(r.p), words.Nothing)) },
			value: func(r *row) filter.Value { return orNothing(pod(r.p)) },
		},
		{
			name: "fds", title: "FDs", help: "open descriptors of devices", width: 4, kind: filter.Number,
			text: func(r *row) (string, cells.Style) {
				if n, ok := descriptors(r.p); ok {
					return plainText(strconv.Itoa(n))
				}
				return plainText(words.Nothing)
			},
			value: func(r *row) filter.Value {
				if n, ok := descriptors(r.p); ok {
					return numbers(float64(n))
				}
				return filter.Value{}
			},
		},
		{
			name: "start", title: "Started", help: "when it was started", width: 12, left: true,
			text: func(r *row) (string, cells.Style) {
				if r.p.StartTime.IsZero() {
					return plainText(words.Nothing)
				}
				return plainText(r.p.StartTime.Local().Format("Jan 02 15:04"))
			},
			value: func(r *row) filter.Value {
				if r.p.StartTime.IsZero() {
					return filter.Value{}
				}
				return texts(r.p.StartTime.Local().Format("2006-01-02 15:04:05"))
			},
		},
		{
			name: "uid", title: "UID", help: "number of the owner", width: 6, kind: filter.Number,
			text:  func(r *row) (string, cells.Style) { return plainText(missing(r, words.Reading(r.p.UID, strconv.Itoa))) },
			value: func(r *row) filter.Value { return of(r.p.UID, func(v int) float64 { return float64(v) }) },
		},
		{
			name: "ppid", title: "PPID", help: "parent", width: 8, kind: filter.Number,
			text:  func(r *row) (string, cells.Style) { return plainText(strconv.Itoa(r.p.PPID)) },
			value: func(r *row) filter.Value { return numbers(float64(r.p.PPID)) },
		},
		{
			name: "state", title: "State", help: "running, exited or hidden", width: 8, left: true,
			text:  func(r *row) (string, cells.Style) { return plainText(string(r.p.State)) },
			value: func(r *row) filter.Value { return orNothing(string(r.p.State)) },
		},
		{
			name: "source", title: "Source", help: "where its memory figures come from", width: 7, left: true,
			text:  func(r *row) (string, cells.Style) { return plainText(cmp.Or(sources(r.p), words.Nothing)) },
			value: func(r *row) filter.Value { return orNothing(sources(r.p)) },
		},
		{
			name: "release", title: "Release", help: "tt-metal release it runs", width: 10, left: true,
			text:  func(r *row) (string, cells.Style) { return plainText(missing(r, words.Foreign(r.p.Release))) },
			value: func(r *row) filter.Value { return ofText(r.p.Release) },
		},
		{
			name: "command", aliases: []string{"cmd", "cmdline"}, title: "Command", help: "command line", left: true, rank: 1,
			text:  func(r *row) (string, cells.Style) { return plainText(r.branch + r.command()) },
			value: func(r *row) filter.Value { return texts(r.command()) },
		},
	}
}

// missing replaces the word for a missing value where none is expected.
func missing(r *row, word string) string {
	if r.parent || r.p.State == model.Hidden && word == "N/A" {
		return words.Nothing
	}
	return word
}

// deviceList names devices as shortly as the column is wide.
func deviceList(list []int, width int) string {
	if len(list) == 0 {
		return words.Nothing
	}
	s := strings.ReplaceAll(words.Ranges(list), ", ", ",")
	if len(s) <= width {
		return s
	}
	return strconv.Itoa(len(list)) + " devs"
}

// pod names a Kubernetes pod as kubectl does, or by its uid.
func pod(p *model.Process) string {
	c := &p.Container
	name := cmp.Or(c.PodName, c.Pod)
	if name != "" && c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	return words.Escape(name)
}

// descriptors sums the open descriptors of all devices, as far as known.
func descriptors(p *model.Process) (n int, ok bool) {
	for i := range p.Devices {
		if r := p.Devices[i].OpenFDs; r.Known() {
			n, ok = n+r.V, true
		}
	}
	return n, ok
}

func sources(p *model.Process) string {
	var out []string
	for i := range p.Devices {
		if src := string(p.Devices[i].Source); src != "" && !slices.Contains(out, src) {
			out = append(out, src)
		}
	}
	return words.Escape(strings.Join(out, "+"))
}

// fieldsOf are the columns as fields of the filter.
func fieldsOf(list []column) []filter.Field {
	out := make([]filter.Field, len(list))
	for i, c := range list {
		out[i] = filter.Field{Name: c.name, Aliases: c.aliases, Kind: c.kind, Help: c.help}
	}
	return out
}
