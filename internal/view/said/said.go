// Package said is a snapshot in words for whoever draws it elsewhere: the page
// in a browser. Every figure with its mark, every reason as a sentence, sums
// with their bounds, exactly as ttmon says them in a terminal, so that the page
// lays out and does not reword.
//
// It is a view: it reads snapshots. internal/api sends it beside each.
package said

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Snapshot is what is said about a snapshot. Devices and processes are in the
// snapshot's order.
type Snapshot struct {
	Schema    string    `json:"schema"` // ttmon.said/1
	Time      time.Time `json:"time"`
	Notices   []Notice  `json:"notices"`
	Totals    Totals    `json:"totals"`
	Devices   []Device  `json:"devices"`
	Processes []Process `json:"processes"`
}

// Notice is a sentence, the worst first.
type Notice struct {
	Level   string `json:"level"` // critical, warning or info
	Code    string `json:"code"`
	Devices []int  `json:"devices"`
	Text    string `json:"text"`
}

// Figure is a memory figure.
type Figure struct {
	Text  string   `json:"text"`            // "~10.2/24.0 GiB", or the word for why there is none
	Bytes *uint64  `json:"bytes"`           // null: not known
	Bound string   `json:"bound,omitempty"` // exact, at_least or unsure
	Ratio *float64 `json:"ratio"`           // how full; null: no bar may be drawn
}

// Totals are sums over the host.
type Totals struct {
	Devices int            `json:"devices"`
	Chips   int            `json:"chips"`
	States  map[string]int `json:"states"`
	Power   string         `json:"power"`
	Hottest string         `json:"hottest"`
	DRAM    Figure         `json:"dram"`
}

// Device is one device.
type Device struct {
	Name        string            `json:"name"`
	State       string            `json:"state"`
	Reason      string            `json:"reason"`
	Temperature string            `json:"temperature"`
	Power       string            `json:"power"` // "61/85 W"
	Clock       string            `json:"clock"`
	Fan         string            `json:"fan"`
	Link        string            `json:"link"`
	ToDevice    string            `json:"to_device"`
	FromDevice  string            `json:"from_device"`
	Activity    string            `json:"activity"`
	Pools       map[string]Figure `json:"pools"`
	Stale       string            `json:"stale"` // memory of the dead; empty: none
	Reasons     []string          `json:"reasons"`
	Chips       []Chip            `json:"chips"`
}

// Chip is one chip of a device.
type Chip struct {
	Name    string            `json:"name"`
	Pools   map[string]Figure `json:"pools"`
	Stale   string            `json:"stale"`
	Reasons []string          `json:"reasons"`
}

// Process is one process.
type Process struct {
	User    string            `json:"user"`
	Job     string            `json:"job"`
	Command string            `json:"command"`
	Age     string            `json:"age"`
	CPU     string            `json:"cpu"`
	RSS     string            `json:"rss"`
	Pools   map[string]Figure `json:"pools"` // over all its devices
	Uses    []Use             `json:"uses"`  // in the order of the process's devices
}

// Use is what a process has of a device.
type Use struct {
	Pools   map[string]Figure `json:"pools"`
	Source  string            `json:"source"`
	Reasons []string          `json:"reasons"`
}

// Of says a snapshot.
func Of(s *model.Snapshot) *Snapshot {
	out := &Snapshot{Schema: "ttmon.said/1", Time: s.Time.UTC(), Notices: notices(s), Totals: totals(s), Devices: []Device{}, Processes: []Process{}}
	for i := range s.Devices {
		out.Devices = append(out.Devices, device(s, &s.Devices[i]))
	}
	for i := range s.Processes {
		out.Processes = append(out.Processes, process(s, &s.Processes[i]))
	}
	return out
}

func notices(s *model.Snapshot) []Notice {
	out := []Notice{}
	for _, n := range words.Notices(s) {
		out = append(out, Notice{[...]string{"critical", "warning", "info"}[n.Level], n.Code, append([]int{}, n.Devices...), n.String()})
	}
	return out
}

// figure is a figure by itself.
func figure(text string, b model.Bytes) Figure {
	f := Figure{Text: text}
	if n, bound, known := b.Best(); known {
		f.Bytes, f.Bound = &n, bound.String()
	}
	return f
}

func pools(m *model.Memory) map[string]Figure {
	out := map[string]Figure{}
	for _, p := range model.Pools() {
		u := &m.Pools[p]
		shown := u.Used
		if taken, _, ok := words.Taken(p, u); ok {
			shown = taken
		}
		f := figure(words.PoolLong(p, u, m.Tracking), shown)
		if ratio, _, ok := words.Ratio(p, u); ok {
			f.Ratio = &ratio
		}
		out[p.String()] = f
	}
	return out
}

// stale says what dead processes left; empty if they left nothing.
func stale(m *model.Memory) string {
	if n, _, known := m.Stale.Best(); !known || n == 0 {
		return ""
	}
	return words.FigureInText(m.Stale)
}

func reasons(list []string) []string { return append([]string{}, list...) }

func device(s *model.Snapshot, d *model.Device) Device {
	whole := func(unit string) func(float64) string {
		return func(v float64) string { return words.Whole(v) + unit }
	}
	out := Device{
		Name: words.Foreign(d.Board), State: words.State(d), Reason: words.StateReason(d),
		Temperature: words.Reading(d.Temperature, func(v float64) string { return words.Temperature(v, words.Celsius) }),
		Clock:       words.Reading(d.AICLK, whole(" MHz")),
		Fan:         words.Reading(d.Fan, whole(" rpm")),
		Link:        words.Link(d.PCIe.Gen, d.PCIe.Width),
		ToDevice:    words.Reading(d.PCIe.ToDeviceRate, words.Rate),
		FromDevice:  words.Reading(d.PCIe.FromDeviceRate, words.Rate),
		Activity:    words.Reading(d.Activity.Ratio, func(v float64) string { return "~" + words.Percent(v) }),
		Power:       words.Reading(d.Power, whole(" W")),
		Pools:       pools(&d.Memory), Stale: stale(&d.Memory), Chips: []Chip{},
		Reasons: reasons(words.Reasons(d.Memory.Tracking, slices.Concat(d.Doubts, d.Memory.Doubts), s.Source)),
	}
	if !d.Board.Known() {
		out.Name = string(d.Arch)
	}
	if limit, ok := d.PowerLimit.Get(); ok && d.Power.Known() {
		out.Power = words.Whole(d.Power.V) + "/" + words.Watts(limit)
	}
	for i := range d.Chips {
		c := &d.Chips[i]
		out.Chips = append(out.Chips, Chip{
			Name: c.Name, Pools: pools(&c.Memory), Stale: stale(&c.Memory),
			Reasons: reasons(words.Reasons(c.Memory.Tracking, c.Memory.Doubts, s.Source)),
		})
	}
	return out
}

func process(s *model.Snapshot, p *model.Process) Process {
	out := Process{
		User: words.Foreign(p.User), Job: words.Job(p), Command: words.Command(p), Age: words.Nothing,
		CPU: words.Reading(p.CPU, words.CPU), RSS: words.Reading(p.RSS, words.Bytes), Pools: map[string]Figure{}, Uses: []Use{},
	}
	if !p.StartTime.IsZero() {
		out.Age = words.Duration(s.Time.Sub(p.StartTime))
	}
	for _, pool := range model.Pools() {
		var sum model.Sum
		tracking := model.TrackAbsent
		for i := range p.Devices {
			sum.Add(p.Devices[i].Memory[pool])
			tracking = p.Devices[i].Tracking
		}
		total := sum.Bytes()
		out.Pools[pool.String()] = figure(words.FigureOr(total, tracking), total)
	}
	for i := range p.Devices {
		u := &p.Devices[i]
		use := Use{Pools: map[string]Figure{}, Source: words.Source(u.Source), Reasons: reasons(words.UseReasons(p, u, s.Source))}
		for _, pool := range model.Pools() {
			use.Pools[pool.String()] = figure(words.FigureOr(u.Memory[pool], u.Tracking), u.Memory[pool])
		}
		out.Uses = append(out.Uses, use)
	}
	return out
}
