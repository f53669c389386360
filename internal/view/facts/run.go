package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// How many are shown of what a run has many of.
const (
	maxProcesses  = 8
	maxOperations = 8
	maxGaps       = 5
)

// Run is all about one run.
func Run(r *runs.Run, now time.Time, zone *time.Location) *sheet.Sheet {
	end := ended(r)
	return &sheet.Sheet{Title: r.RunName() + "  " + runwords.Command(r), Status: &sheet.Note{Text: end.Text, Level: end.Level}, Parts: []sheet.Part{
		{Pairs: run(r, now, zone)}, runMemory(r), runLines(r), runDevices(r), runOperations(r), runGaps(r), neighbours(r), runLeft(r),
	}}
}

// Runs are runs in the order of the list. The highest rank is the first to give way where
// a terminal is narrow.
func Runs(list []runs.Run, now time.Time, zone *time.Location) *sheet.Table {
	t := &sheet.Table{Rows: []sheet.Row{}, Columns: []sheet.Column{
		{Name: "run", Head: "Run"},
		{Name: "when", Head: "When"},
		{Name: "took", Head: "Took", Right: true, Rank: 1},
		{Name: "user", Head: "User"},
		{Name: "job", Head: "Job", Rank: 2},
		{Name: "devices", Head: "Dev"},
		{Name: "dram", Head: "Peak DRAM", Right: true},
		{Name: "busy", Head: "Busy", Right: true, Rank: 3},
		{Name: "energy", Head: "Energy", Right: true, Rank: 4},
		{Name: "end", Head: "End", Least: 20, Most: 20},
		{Name: "command", Head: "Command", Rest: true},
	}}
	for i := range list {
		r := &list[i]
		x := row(r.RunName(), "", words.Duration(r.Took()), runwords.User(r), runwords.Job(r), runwords.Devices(r),
			words.Figure(r.Pool(model.DRAM).PeakBytes()), runwords.Busy(r), runwords.Energy(r), "", runwords.Command(r))
		x.Cells[0].Link = "/runs/" + r.RunName()
		x.Cells[1] = sheet.Value{Text: runwords.When(r.Start, now, zone), Time: &r.Start}
		x.Cells[9] = ended(r)
		t.Rows = append(t.Rows, x)
	}
	return t
}

// ended says how a run ended, and whether that was not well.
func ended(r *runs.Run) sheet.Value {
	v := sheet.Text(runwords.End(r))
	if r.End.Failed() || len(r.Left) > 0 {
		v.Level = model.Warning
	}
	return v
}

// run is what it was, who it belongs to, and how long it took.
func run(r *runs.Run, now time.Time, zone *time.Location) (list []sheet.Pair) {
	add := func(name, text string) *sheet.Pair {
		if text == "" || text == words.Nothing || text == words.Missing(model.Absent) {
			return &sheet.Pair{}
		}
		list = append(list, fact(name, text))
		return &list[len(list)-1]
	}
	at := func(name string, t time.Time, more string) {
		if !t.IsZero() {
			add(name, t.In(zone).Format(time.DateTime)+more).Value.Time = &t
		}
	}
	add("User", cmp.Or(runwords.Reach(r), runwords.User(r)))
	add("Job", runwords.Job(r))
	add("Host", words.Escape(r.Host))
	add("Release", words.Escape(r.Release))
	at("Began", r.Start, "  ("+runwords.When(r.Start, now, zone)+")")
	add("Took", words.Duration(r.Took()))
	at("Ended", r.End.At, "")
	if r.Unseen > 0 {
		add("Unobserved", words.Duration(span(r.Unseen))+": no snapshot; means and energy are of the rest")
	}
	add("Energy", energy(r))
	add("Busy", runwords.Busy(r))
	failed := add("Allocations", runwords.Failures(r))
	if f := r.Failures; f != nil && f.ID != "" {
		failed.Value.Link = "/failures/" + f.ID
	}
	add("Processes", processes(r))
	return list
}

func span(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// energy says what the devices took, and what that stands for.
func energy(r *runs.Run) string {
	if _, known := r.Energy(); !known {
		return ""
	}
	text := runwords.Energy(r) + " of its devices"
	if s := r.Shared(); s > 0 {
		text += ", which others used, too, for " + words.Duration(span(s))
	}
	return text
}

func processes(r *runs.Run) string {
	var list []string
	for _, p := range r.Processes[:min(len(r.Processes), maxProcesses)] {
		list = append(list, strconv.Itoa(p.PID))
	}
	if more := len(r.Processes) - len(list) + r.Dropped; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, " ")
}

// table has no rows yet. A head that ends with a dot is of numbers.
func table(heads ...string) *sheet.Table {
	t := &sheet.Table{Rows: []sheet.Row{}}
	for _, head := range heads {
		text, right := strings.CutSuffix(head, ".")
		t.Columns = append(t.Columns, sheet.Column{Name: strings.ToLower(text), Head: text, Right: right})
	}
	return t
}

func row(texts ...string) (r sheet.Row) {
	for _, text := range texts {
		r.Cells = append(r.Cells, sheet.Text(text))
	}
	return r
}

// runMemory is what was held of each pool: on every device, and on every chip of those
// that have several.
func runMemory(r *runs.Run) sheet.Part {
	t := table("Device", "Pool", "Peak.", "after.", "Mean.")
	running := r.End.Kind == runs.Running
	if running {
		t.Columns = append(t.Columns, table("Now.").Columns...)
	}
	add := func(name string, pools map[string]runs.Pool) {
		for _, pool := range model.Pools() {
			p, ok := pools[pool.String()]
			if !ok || p.Peak == 0 && pool != model.DRAM {
				continue
			}
			x := row(name, runwords.PoolName(pool), words.Figure(p.PeakBytes()), words.Duration(max(p.PeakAt.Sub(r.Start), 0)), runwords.Mean(r, p))
			if running {
				x.Cells = append(x.Cells, sheet.Text(words.Figure(model.BoundBytes(p.Held, model.ParseBound(cmp.Or(p.HeldBound, p.PeakBound))))))
			}
			t.Rows = append(t.Rows, x)
			name = ""
		}
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		add(ofRun(d).Text, d.Pools)
		for k := range d.Chips {
			add("  "+cmp.Or(words.Escape(d.Chips[k].Name), words.Escape(d.Chips[k].ID)), d.Chips[k].Pools)
		}
	}
	if len(t.Rows) == 0 {
		return sheet.Part{Title: "Memory", Notes: []sheet.Note{{Text: "no source accounted for it"}}}
	}
	return sheet.Part{Title: "Memory", Table: t}
}

// ofRun names a device of a run.
func ofRun(d *runs.Device) sheet.Value {
	if d.Index < 0 {
		return sheet.Text(words.Nothing)
	}
	v := sheet.Text(strings.TrimSpace(strconv.Itoa(d.Index) + " " + words.Escape(d.Board)))
	if d.BusID != "" {
		v.Link = "/device/" + d.BusID
	}
	return v
}

// runLines are the lines of code that held the most at the peak, and why they are not
// known, or not all.
func runLines(r *runs.Run) sheet.Part {
	out := sheet.Part{Title: "Lines of code at the peak"}
	switch {
	case r.Lines == nil && r.NoLines == runs.NotTraced:
		out.Notes = []sheet.Note{{Text: "lines of code are not known: only a program that runs under ttmon run --stacks reports which line allocates"}}
	case r.Lines == nil && r.NoLines == runs.OtherUser:
		out.Notes = []sheet.Note{{Text: "lines of code are shown only to the user of the run and to root"}}
	}
	if r.Lines == nil {
		return out
	}
	mark := ""
	if r.Lines.Lost > 0 {
		mark = words.Mark(model.Unsure)
		out.Notes = []sheet.Note{{Text: fmt.Sprintf("allocations and frees that are missing in these lines: %d", r.Lines.Lost)}}
	}
	out.Table = table("Line of code", "Pool", "At the peak.", "Allocations.")
	for i := range r.Lines.Lines {
		l := &r.Lines.Lines[i]
		out.Table.Rows = append(out.Table.Rows, row(runwords.Line(&l.Line), words.Escape(strings.ToUpper(l.Pool)), mark+words.Bytes(l.AtPeak), strconv.FormatUint(l.Allocs, 10)))
	}
	return out
}

// runDevices are power, heat, traffic and trouble of each device.
func runDevices(r *runs.Run) sheet.Part {
	t := table("Device", "Open.", "Power mean.", "max.", "Energy.", "Hottest.", "AICLK mean.", "Busy.", "PCIe to.", "from.", "Trouble")
	missing := words.Missing(model.Absent)
	mean := func(s *runs.Stat, f metric.Form) string {
		if s == nil || s.Seconds == 0 {
			return missing
		}
		return runwords.Over(r, f.Format(s.Mean), s.Seconds)
	}
	most := func(s *runs.Stat, f metric.Form) string {
		if s == nil {
			return missing
		}
		return f.Format(s.Max)
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		joules, to, from := missing, missing, missing
		if d.Power != nil && d.Power.Seconds > 0 {
			joules = words.Mark(model.Unsure) + runwords.Joules(d.Energy)
		}
		if p := d.PCIe; p != nil && d.Open > 0 { // of one snapshot no traffic is known
			bound := model.ParseBound(p.Bound)
			to, from = words.Figure(model.BoundBytes(p.ToDevice, bound)), words.Figure(model.BoundBytes(p.FromDevice, bound))
		}
		x := row("", words.Duration(span(d.Open)), mean(d.Power, metric.Watts), most(d.Power, metric.Watts), joules, most(d.Temperature, metric.Celsius),
			mean(d.Clock, metric.Megahertz), runwords.DeviceBusy(r, d), to, from, runwords.Trouble(d))
		x.Cells[0] = ofRun(d)
		t.Rows = append(t.Rows, x)
	}
	return sheet.Part{Title: "Devices", Table: t}
}

// runOperations are those that took most of the run's chips.
func runOperations(r *runs.Run) sheet.Part {
	t := table("Operation", "Time.", "Calls.", "Mean.")
	busy, _ := r.Busy()
	if r.End.Kind != runs.Running { // what ran after the last snapshot is not in it
		busy.Bound = max(busy.Bound, model.AtLeast)
	}
	mark := words.Mark(busy.Bound)
	list := r.Operations()
	for _, o := range list[:min(len(list), maxOperations)] {
		t.Rows = append(t.Rows, row(words.Escape(o.Name), mark+programTime(o.Seconds), mark+strconv.FormatUint(o.Calls, 10), programTime(o.Seconds/float64(max(o.Calls, 1)))))
	}
	return sheet.Part{Title: "Operations that took most time", Table: t}
}

func programTime(s float64) string { return words.ProgramTime(span(s)) }

// runGaps are the longest times between two programs, and why some are not listed or not
// certain.
func runGaps(r *runs.Run) sheet.Part {
	t := table("Length.", "Device", "Ended after.", "Operation before")
	out := sheet.Part{Title: "Longest gaps between programs", Table: t}
	list := r.Gaps()
	if missing := r.GapsMissing(); missing != "" {
		which := "the longest gaps"
		if len(list) > 0 {
			which = "some of the longest gaps"
		}
		out.Notes = append(out.Notes, sheet.Note{Text: fmt.Sprintf("%s are not listed: %s", which, missing.Why())})
	}
	for _, g := range list[:min(len(list), maxGaps)] {
		length := programTime(g.Seconds)
		if g.Cause != "" {
			length = words.Mark(model.Unsure) + length
			if why := (sheet.Note{Text: "gaps are not certain: " + g.Cause.Why()}); !slices.Contains(out.Notes, why) {
				out.Notes = append(out.Notes, why)
			}
		}
		ended, device := words.Nothing, words.Nothing
		if !g.End.IsZero() {
			ended = words.Duration(max(g.End.Sub(r.Start), 0))
		}
		if g.Device >= 0 {
			device = strings.TrimSpace(strconv.Itoa(g.Device) + " " + words.Escape(g.Chip))
		}
		t.Rows = append(t.Rows, row(length, device, ended, cmp.Or(words.Escape(g.After), words.Nothing)))
	}
	return out
}

// neighbours are the runs that used the same devices.
func neighbours(r *runs.Run) sheet.Part {
	t := table("Run", "Program", "User", "Devices", "For.")
	for _, n := range r.Neighbours {
		name := fmt.Sprintf("r%d", n.ID)
		x := row(name, cmp.Or(words.Escape(n.Name), "a process that is hidden from you"), cmp.Or(words.Escape(n.User), words.Nothing), words.Ranges(n.Devices), words.Duration(span(n.Seconds)))
		x.Cells[0].Link = "/runs/" + name
		t.Rows = append(t.Rows, x)
	}
	if r.MoreNeighbours {
		t.More = "and others"
	}
	return sheet.Part{Title: "Who shared its devices", Table: t}
}

// runLeft is what its processes left behind.
func runLeft(r *runs.Run) sheet.Part {
	out := sheet.Part{Title: "Left behind"}
	for _, l := range r.Left {
		text := fmt.Sprintf("process %d left %s in %s: see ttmon mem --stale", l.PID, runwords.Left(&runs.Run{Left: []runs.Left{l}}), words.Escape(l.Region))
		out.Notes = append(out.Notes, sheet.Note{Level: model.Warning, Text: text})
	}
	return out
}
