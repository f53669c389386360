package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/facts"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// runHeadsCSV are the titles of the table of runs for scripts.
const (
	runHeadsCSV = "run,host,user,uid,job_kind,job,start,end,seconds,end_kind,exit_code,signal,oom_killed,device,bus_id,board,open_s,shared_s," +
		"dram_peak_bytes,dram_peak_bound,dram_mean_bytes,l1_peak_bytes,l1_peak_bound,l1_mean_bytes,power_mean_w,power_max_w,energy_j,temperature_max_c,throttled_s," +
		"pcie_to_device_bytes,pcie_from_device_bytes,left_bytes,command,busy_s,busy_ratio,busy_bound,allocation_failures,no_room,dram_mean_known_s,l1_mean_known_s\n"
)

// AppendRuns draws runs as a table, the newest first.
func AppendRuns(dst []byte, a *runs.Answer, o Options) []byte {
	if len(a.Runs) == 0 {
		return append(dst, "no run\n"...)
	}
	t := facts.Runs(a.Runs, a.Time, o.zone()).Lines()
	t.Indent = 0
	slices.Reverse(t.Rows)
	for i := range t.Columns {
		switch c := &t.Columns[i]; {
		case o.Width == 0: // no terminal: nothing gives way
			*c = lines.Column{Head: c.Head}
		case c.Most > 0:
			c.Most = max(c.Least, o.Width/4)
		}
	}
	p := newPrinter(dst, o)
	p.Table(t)
	dst = p.Buf
	if a.More {
		dst = append(dst, "older runs are left out: --since, -n\n"...)
	}
	return dst
}

// AppendRunsCSV writes runs for scripts: a line for each device of a run. What is
// not known is empty.
func AppendRunsCSV(dst []byte, a *runs.Answer) []byte {
	dst = append(dst, runHeadsCSV...)
	for i := range a.Runs {
		r := &a.Runs[i]
		kind, job := "", ""
		if r.Job != nil {
			kind, job = r.Job.Kind, r.Job.ID
		}
		left, _ := r.LeftBytes()
		code, signal := "", ""
		if r.End.Code != nil {
			code = strconv.Itoa(*r.End.Code)
		}
		if r.End.Signal != 0 {
			signal = strconv.Itoa(r.End.Signal)
		}
		end := ""
		if !r.End.At.IsZero() {
			end = r.End.At.UTC().Format(time.RFC3339)
		}
		for k := range r.Devices {
			d := &r.Devices[k]
			dst = fmt.Appendf(dst, "%s,%s,%s,%d,%s,%s,%s,%s,%.3f,%s,%s,%s,%t,%d,%s,%s,%.3f,%.3f,", r.RunName(), CSVField(words.Escape(r.Host)), CSVField(words.Escape(r.User)), r.UID,
				kind, CSVField(words.Escape(job)), r.Start.UTC().Format(time.RFC3339), end, r.Took().Seconds(), r.End.Kind, code, signal, r.End.OutOfMemory,
				d.Index, d.BusID, CSVField(words.Escape(d.Board)), d.Open, d.Shared)
			for _, pool := range []model.Pool{model.DRAM, model.L1} {
				dst = appendPoolCSV(dst, d.Pools[pool.String()])
			}
			dst = appendStatsCSV(dst, d)
			dst = fmt.Appendf(dst, "%d,%s,", left, CSVField(words.Escape(cmp.Or(r.Command, r.Name))))
			dst = appendBusyCSV(dst, d)
			failures := ""
			if r.Failures != nil {
				failures = strconv.FormatUint(r.Failures.Count, 10)
			}
			dst = fmt.Appendf(dst, ",%s,%t", failures, r.End.NoRoom)
			for _, pool := range []model.Pool{model.DRAM, model.L1} {
				dst = appendKnownCSV(dst, d.Pools[pool.String()])
			}
			dst = append(dst, '\n')
		}
	}
	return dst
}

// appendBusyCSV says how busy a device was, where that was measured.
func appendBusyCSV(dst []byte, d *runs.Device) []byte {
	if b, known := d.Busy(); known {
		return fmt.Appendf(dst, "%.3f,%.4f,%s", b.Seconds, b.Ratio, b.Bound)
	}
	return append(dst, ",,"...)
}

func appendPoolCSV(dst []byte, p runs.Pool) []byte {
	if p.PeakBound == "" {
		return append(dst, ",,,"...)
	}
	dst = fmt.Appendf(dst, "%d,%s,", p.Peak, p.PeakBound)
	if p.Seconds > 0 {
		dst = fmt.Appendf(dst, "%.0f", p.Mean)
	}
	return append(dst, ',')
}

// appendKnownCSV says for how many seconds of the run its mean was known.
func appendKnownCSV(dst []byte, p runs.Pool) []byte {
	if p.Seconds == 0 {
		return append(dst, ',')
	}
	return fmt.Appendf(dst, ",%.3f", p.Seconds)
}

func appendStatsCSV(dst []byte, d *runs.Device) []byte {
	if p := d.Power; p != nil {
		dst = fmt.Appendf(dst, "%.2f,%.2f,%.1f,", p.Mean, p.Max, d.Energy)
	} else {
		dst = append(dst, ",,,"...)
	}
	if t := d.Temperature; t != nil {
		dst = fmt.Appendf(dst, "%.1f", t.Max)
	}
	dst = fmt.Appendf(dst, ",%.1f,", d.Trouble[model.ConditionThrottled])
	if p := d.PCIe; p != nil {
		return fmt.Appendf(dst, "%d,%d,", p.ToDevice, p.FromDevice)
	}
	return append(dst, ",,"...)
}

// AppendRun tells all about one run.
func AppendRun(dst []byte, r *runs.Run, now time.Time, o Options) []byte {
	p := newPrinter(dst, o)
	if len(dst) > 0 { // there is a run above
		p.Newline()
	}
	p.Lines(sheet.Lines(facts.Run(r, now, o.zone()), p.LayoutWidth())...)
	return p.Buf
}
