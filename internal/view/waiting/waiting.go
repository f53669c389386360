// Package waiting shows whether a process is stuck, with all the evidence:
// what completed last, what was enqueued after it, how long the host has waited,
// and whether its chips are alive.
package waiting

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// Append appends what is known of a process's work.
func Append(dst []byte, s *model.Snapshot, p *model.Process, to lines.Options) []byte {
	out := lines.Printer{Options: to, Buf: dst}
	out.Lines(sheet.Lines(Sheet(s, p), out.LayoutWidth())...)
	return out.Buf
}

// Sheet is what is known of a process's work.
func Sheet(s *model.Snapshot, p *model.Process) *sheet.Sheet {
	x := &writer{s: s, p: p, w: assess.Wait(s, p)}
	x.completed()
	x.host()
	x.process()
	x.chips()
	out := &sheet.Sheet{Title: x.title(), Parts: []sheet.Part{{Pairs: x.facts}}}
	advice := sheet.Part{}
	for i, text := range x.conclusion() {
		n := sheet.Note{Code: string(x.w.Verdict), Text: text}
		if i == 0 {
			out.Status = &n
		} else {
			advice.Notes = append(advice.Notes, n)
		}
	}
	out.Parts = append(out.Parts, advice)
	return out
}

// writer collects the facts about a process.
type writer struct {
	s     *model.Snapshot
	p     *model.Process
	w     assess.Waiting
	facts []sheet.Pair
}

func (x *writer) line(name, text string) {
	x.facts = append(x.facts, sheet.Pair{Name: name, Value: sheet.Text(text)})
}

func (x *writer) title() string {
	state := "no sign of being stuck"
	switch x.w.Verdict {
	case assess.WaitStuck:
		state = words.Kind(model.ConditionStuck)
	case assess.WaitNotWatched, assess.WaitNoWork:
		state = "not known whether it is stuck"
	case assess.WaitPower:
		state = "may be stuck, or runs a long program"
	case assess.WaitDevice:
		state = "its device is in trouble"
	case assess.WaitStopped:
		state = "stopped"
	case assess.WaitCompiles:
		state = "compiling"
	}
	return fmt.Sprintf("%s (%d, %s): %s", words.Program(x.p), x.p.PID, words.Foreign(x.p.User), state)
}

func (x *writer) ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	if d := x.s.Time.Sub(t); d >= time.Second {
		return words.Duration(d) + " ago"
	}
	return "just now"
}

// operation is a name that a process gave, or what stands for none.
func operation(name string) string { return words.Operation(&model.Operation{Name: name}) }

// completed is what each chip completed last.
func (x *writer) completed() {
	label := "completed"
	for i := range x.p.Work.Chips {
		c := &x.p.Work.Chips[i]
		text := fmt.Sprintf("on %s: %s, %s", chipName(c), operation(c.LastName), x.ago(c.LastRecord))
		if c.LastRecord.IsZero() {
			text = fmt.Sprintf("on %s: nothing yet", chipName(c))
		}
		if n, ok := c.Work.ProgramSum.Get(); ok {
			text += fmt.Sprintf("; %s%d programs so far", words.Mark(x.heard()), n)
		}
		if c.Longest > 0 {
			text += fmt.Sprintf(", the longest took %s (%s)", span(c.Longest), operation(c.LongestName))
		}
		x.line(label, text)
		label = ""
	}
}

// heard is the bound of how many programs completed: more were enqueued than the
// chips have reported together.
func (x *writer) heard() model.Bound {
	var n uint64
	for i := range x.p.Work.Chips {
		n += x.p.Work.Chips[i].Work.ProgramSum.V
	}
	if h := &x.p.Work.Host; x.p.Work.Watched && n < h.Enqueued+h.Replayed {
		return model.AtLeast
	}
	return model.Exact
}

func chipName(c *model.ChipWork) string {
	if c.Device == model.NoDevice {
		return "chip " + strconv.FormatUint(c.ChipID, 10)
	}
	return strings.TrimSpace("device " + strconv.Itoa(c.Device) + " " + words.Escape(c.Chip))
}

func span(seconds float64) string {
	return words.ProgramTime(time.Duration(seconds * float64(time.Second)))
}

// host is what the process has asked for, and what it waits for.
func (x *writer) host() {
	h := &x.p.Work.Host
	if !x.p.Work.Watched {
		return
	}
	x.line("enqueued", x.enqueued())
	switch {
	case h.WaitingSince.IsZero() && h.LastFinish.IsZero():
		x.line("waits", "not for its chips")
	case h.WaitingSince.IsZero():
		x.line("waits", "not for its chips; last finish returned "+x.ago(h.LastFinish))
	default:
		in := "in a finish, for all that was enqueued"
		if h.WaitingFor == model.WaitsForEvent {
			in = "for an event"
		}
		x.line("waits", "for "+words.Duration(x.s.Time.Sub(h.WaitingSince))+" "+in)
	}
}

// enqueued is what the process has asked for so far.
func (x *writer) enqueued() string {
	h := &x.p.Work.Host
	if h.Enqueued == 0 && h.Replayed == 0 {
		return "nothing yet"
	}
	text := fmt.Sprintf("%d programs", h.Enqueued)
	if h.Replayed > 0 {
		text += fmt.Sprintf(" and %d replays of traces", h.Replayed)
	}
	if h.LastEnqueue.IsZero() {
		return text
	}
	text += ", the last one "
	if h.LastName != "" {
		text += "(" + words.Escape(h.LastName) + ") "
	}
	return text + x.ago(h.LastEnqueue) + x.after()
}

// after says whether something was enqueued after the last program completed.
func (x *writer) after() string {
	var last time.Time
	for i := range x.p.Work.Chips {
		if t := x.p.Work.Chips[i].LastRecord; t.After(last) {
			last = t
		}
	}
	if !last.IsZero() && x.p.Work.Host.LastEnqueue.After(last) {
		return ", after the last one completed"
	}
	return ""
}

func (x *writer) process() {
	text := "runs"
	switch {
	case x.p.Condition == model.Stopped:
		text = "is stopped, by a signal or a debugger"
	case x.p.Condition == model.Stuck:
	case x.p.Condition != "":
		text = string(x.p.Condition)
	}
	if cpu, ok := x.p.CPU.Get(); ok {
		text += ", CPU " + words.CPU(cpu)
		if !x.p.Work.Host.WaitingSince.IsZero() {
			text += " (a thread that waits for a chip polls it)"
		}
	}
	x.line("process", text)
}

// chips says of each device whether it is alive: heartbeat, power, PCIe.
func (x *writer) chips() {
	seen := map[int]bool{}
	for i := range x.p.Work.Chips {
		d := x.s.Device(x.p.Work.Chips[i].Device)
		if d == nil || seen[d.Index] {
			continue
		}
		seen[d.Index] = true
		x.line("device "+strconv.Itoa(d.Index), strings.Join([]string{heartbeat(d), x.power(d), traffic(d)}, "; "))
	}
}

func heartbeat(d *model.Device) string {
	age, ok := d.HeartbeatAge.Get()
	switch {
	case d.State != model.StateOK:
		return "state: " + string(d.State)
	case !ok:
		return "heartbeat not known"
	case age < 3:
		return "heartbeat moves"
	}
	return "no heartbeat for " + words.Duration(time.Duration(age*float64(time.Second)))
}

// power is what a device draws, and what it draws while this process works.
func (x *writer) power(d *model.Device) string {
	watts, ok := d.Power.Get()
	if !ok {
		return "power not known"
	}
	text := "draws " + words.Whole(watts) + " W"
	for _, c := range assess.Of(x.s).Conditions() {
		if c.Kind != model.ConditionStuck || c.Process != x.p.ID() {
			continue
		}
		for _, f := range c.Facts {
			if f.Kind == model.FactWorkPower && c.Device == d.Index {
				text += ", " + words.Whole(f.Limit) + " W while this job works"
			}
		}
	}
	return text
}

func traffic(d *model.Device) string {
	to, ok := d.PCIe.ToDeviceRate.Get()
	from, ok2 := d.PCIe.FromDeviceRate.Get()
	switch {
	case !ok || !ok2:
		return "PCIe traffic not known"
	case to == 0 && from == 0:
		return "no PCIe traffic"
	}
	return "PCIe to " + words.Rate(to) + ", from " + words.Rate(from)
}

// devices are those whose reset would reach all that the process waits for.
func (x *writer) devices() []int {
	var list []int
	for _, u := range x.p.Devices {
		if u.Device != model.NoDevice && !slices.Contains(list, u.Device) {
			list = append(list, u.Device)
		}
	}
	return list
}

func (x *writer) conclusion() []string {
	silent, need := words.Duration(x.w.Silence), words.Duration(x.w.Need)
	switch x.w.Verdict {
	case assess.WaitStuck:
		return []string{
			"nothing has completed for " + silent + ", which is more than " + need + " (" + x.rule() + "), while the host waits" + x.resting() + ": a suspicion, not a proof",
			"next: tt-triage or a stack of the process (py-spy dump --pid " + strconv.Itoa(x.p.PID) + ", gdb) shows where it waits",
			"where only a reset helps: " + words.Reset(x.s, x.devices()),
		}
	case assess.WaitNotWatched:
		return []string{"its waits are not known: " + x.p.Work.HostCause.Why()}
	case assess.WaitNoWork:
		return []string{"none of its chips has reported a program yet" + x.noWork()}
	case assess.WaitStopped:
		return []string{"it is stopped: it cannot see that its chips are done"}
	case assess.WaitCompiles:
		return []string{"compilers that it has started run, and no thread waits for its chips"}
	case assess.WaitDevice:
		return []string{"device " + strconv.Itoa(x.w.Device) + " does not work as it should, which is the trouble here: ttmon smi -i " + strconv.Itoa(x.w.Device)}
	case assess.WaitNot:
		return []string{"no thread waits for the chips: it computes, compiles or waits for something else"}
	case assess.WaitStarved:
		return []string{"it gets hardly any processor time, so that it cannot see that its chips are done"}
	case assess.WaitRecent:
		return []string{"nothing has completed for " + silent + ": it takes at least " + need + " (" + x.rule() + ") to suspect it"}
	case assess.WaitPower:
		return []string{"nothing has completed for " + silent + ", but its chips draw what they draw at work, or that is not known: a long program looks the same. ttmond, which has watched it, judges better than one look"}
	}
	return nil
}

// rule is what the silence that it takes follows from.
func (x *writer) rule() string {
	switch x.w.Rule {
	case assess.NeedBusyHost:
		return "twice its longest program and 8 s, times three on a busy host"
	case assess.NeedBlind:
		return "since power does not show whether its chips work"
	}
	return "twice its longest program, and 8 s"
}

// resting is what the power of its chips has shown.
func (x *writer) resting() string {
	switch {
	case x.w.Chips == 0:
		return ""
	case x.w.Resting == 0:
		return "; whether its chips are idle is not known"
	case x.w.Resting < x.w.Chips:
		return fmt.Sprintf(" and %d of its %d chips are idle (of the others it is not known)", x.w.Resting, x.w.Chips)
	}
	return " and its chips are idle"
}

// noWork is why a process that is watched has no figure.
func (x *writer) noWork() string {
	for _, u := range x.p.Devices {
		if d := x.s.Device(u.Device); d != nil && d.Work.Cause != "" {
			return ": " + words.WorkCause(d.Work.Cause)
		}
	}
	return ""
}

// Schema names the JSON.
const Schema = "ttmon.waiting/1"

// AppendJSON appends the same for scripts; the process itself is in the snapshot.
func AppendJSON(dst []byte, s *model.Snapshot, p *model.Process) []byte {
	w := assess.Wait(s, p)
	type chip struct {
		Device   *int    `json:"device"`
		ChipID   uint64  `json:"chip_id,string"`
		Last     string  `json:"last_completed,omitempty"`
		LastAt   *string `json:"last_completed_at"`
		Programs *uint64 `json:"programs"`
		Longest  float64 `json:"longest_s"`
		LongestN string  `json:"longest_operation,omitempty"`
	}
	at := func(t time.Time) *string {
		if t.IsZero() {
			return nil
		}
		text := t.UTC().Format(time.RFC3339Nano)
		return &text
	}
	chips := []chip{}
	for i := range p.Work.Chips {
		c := &p.Work.Chips[i]
		x := chip{ChipID: c.ChipID, Last: c.LastName, LastAt: at(c.LastRecord), Longest: c.Longest, LongestN: c.LongestName}
		if c.Device != model.NoDevice {
			x.Device = &c.Device
		}
		if n, ok := c.Work.ProgramSum.Get(); ok {
			x.Programs = &n
		}
		chips = append(chips, x)
	}
	h := &p.Work.Host
	b, err := json.Marshal(map[string]any{
		"schema": Schema, "time": s.Time.UTC().Format(time.RFC3339Nano), "simulated": s.Simulated, "pid": p.PID, "verdict": w.Verdict,
		"silent_s": w.Silence.Seconds(), "needed_s": w.Need.Seconds(), "needed_by": w.Rule, "longest_s": w.Longest, "chips": chips,
		"enqueued": h.Enqueued, "replayed": h.Replayed, "last_enqueued": h.LastName, "last_enqueue_at": at(h.LastEnqueue),
		"waiting_since": at(h.WaitingSince), "waiting_for": h.WaitingFor,
	})
	if err != nil {
		panic("BUG: a verdict is not JSON: " + err.Error())
	}
	return append(append(dst, b...), '\n')
}
