package runwords

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/words"
)

// Present completes runs of an answer with their words.
func Present(list []runs.Run) {
	for i := range list {
		x := &list[i]
		x.End.Text, x.Failed, x.Formatted = End(x), x.End.Failed(), Format(x)
		for k := range x.Devices {
			d := &x.Devices[k]
			d.Formatted = FormatDevice(x, d)
			sayMeans(x, d.Pools)
			for n := range d.Chips {
				sayMeans(x, d.Chips[n].Pools)
			}
		}
		for k := range x.Left {
			x.Left[k].Text = Left(&runs.Run{Left: x.Left[k : k+1]})
		}
	}
}

// sayMeans completes pools of a run with their means in words.
func sayMeans(r *runs.Run, pools map[string]runs.Pool) {
	for name, p := range pools {
		p.MeanText = Mean(r, p)
		pools[name] = p
	}
}

// JobEnd says how the runs of a job ended: that of one, or how many failed.
func JobEnd(j *runs.JobGroup) string {
	switch n := len(j.Runs); {
	case n == 1:
		return End(&runs.Run{End: j.Runs[0].End})
	case j.Failed > 0:
		return fmt.Sprintf("%d of %d runs failed", j.Failed, n)
	case j.Running:
		return fmt.Sprintf("running, %d runs", n)
	}
	return words.Count(len(j.Runs), "run")
}

// Format writes a run in words.
func Format(r *runs.Run) *runs.Formatted {
	return &runs.Formatted{
		Took: words.Duration(r.Took()), User: User(r), Reach: Reach(r), Job: Job(r), Devices: Devices(r), PeakDRAM: words.Figure(r.Pool(model.DRAM).PeakBytes()),
		Energy: Energy(r), Activity: Activity(r), Busy: Busy(r), Command: Command(r), Failures: Failures(r),
	}
}

// FormatDevice writes in words what a run took of a device.
func FormatDevice(r *runs.Run, d *runs.Device) *runs.FormattedDevice {
	missing := words.Missing(model.Absent)
	mean := func(s *runs.Stat, say func(float64) string) string {
		if s == nil || s.Seconds == 0 {
			return missing
		}
		return over(r, say(s.Mean), s.Seconds)
	}
	most := func(s *runs.Stat, say func(float64) string) string {
		if s == nil {
			return missing
		}
		return say(s.Max)
	}
	form := func(f metric.Form) func(float64) string {
		return func(v float64) string { return f.Format(v) }
	}
	x := &runs.FormattedDevice{
		Open: seconds(d.Open), Power: mean(d.Power, form(metric.Watts)), PowerMax: most(d.Power, form(metric.Watts)), Energy: missing,
		Hottest: most(d.Temperature, form(metric.Celsius)), Clock: mean(d.Clock, form(metric.Megahertz)), Activity: mean(d.Activity, form(metric.Estimate)), Busy: DeviceBusy(r, d), To: missing, From: missing, Trouble: Trouble(d),
	}
	if d.Power != nil && d.Power.Seconds > 0 {
		x.Energy = words.Mark(model.Unsure) + Joules(d.Energy)
	}
	if p := d.PCIe; p != nil && d.Open > 0 { // of one snapshot no traffic is known
		bound := model.ParseBound(p.Bound)
		x.To, x.From = words.Figure(model.BoundBytes(p.ToDevice, bound)), words.Figure(model.BoundBytes(p.FromDevice, bound))
	}
	return x
}

// Trouble says for how long a device was in which trouble.
func Trouble(d *runs.Device) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(d.Trouble)) {
		list = append(list, words.Escape(strings.ReplaceAll(string(k), "_", " "))+" "+seconds(d.Trouble[k]))
	}
	if d.Resets > 0 {
		list = append(list, fmt.Sprintf("reset %d×", d.Resets))
	}
	return strings.Join(list, ", ")
}
