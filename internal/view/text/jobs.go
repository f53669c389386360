package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/runwords"
)

// jobHeads are the titles of the table of jobs; jobHeadsCSV those for scripts.
var (
	jobHeads    = []string{"Job", "User", "State", "Start", "Elapsed", "Dev", "Board", "DRAM peak", "L1 peak", "Energy", "End", "Left"}
	jobHeadsCSV = "kind,job,user,uid,state,start,last,elapsed_s,device,board,dram_peak_bytes,dram_bound,l1_peak_bytes,l1_bound,holding,left_bytes,runs,failed,energy_j,energy_bound\n"
)

// AppendJobs draws jobs as a table: a line for each device that a job had.
func AppendJobs(dst []byte, a *runs.JobsAnswer, o Options) []byte {
	if len(a.Jobs) == 0 {
		return append(dst, "no job has been seen at a device\n"...)
	}
	rows := [][]string{jobHeads}
	for i := range a.Jobs {
		j := &a.Jobs[i]
		first := []string{jobName(j), words.Escape(j.User), jobState(j), clock(j.Start, o), words.Duration(elapsed(j))}
		for k := range j.Devices {
			d := &j.Devices[k]
			left, energy, end := "", "", ""
			if k == 0 {
				left, energy, end = leftWords(j), jobEnergy(j), runwords.JobEnd(j)
			} else {
				first = make([]string, len(first))
			}
			rows = append(rows, append(slices.Clone(first), deviceName(d.Index), words.Escape(d.Board), words.Figure(d.Peak(model.DRAM)), words.Figure(d.Peak(model.L1)), energy, end, left))
		}
	}
	dst = appendAligned(dst, rows)
	if a.More {
		dst = append(dst, "older runs of these jobs are left out\n"...)
	}
	return dst
}

// jobName says which job it is.
func jobName(j *runs.JobGroup) string {
	if j.Kind == runs.JobPod {
		name := j.Name
		if name == "" {
			name = j.ID
		}
		return words.Escape(strings.TrimPrefix(j.Namespace+"/"+name, "/"))
	}
	return words.Escape(j.ID)
}

func jobState(j *runs.JobGroup) string {
	if j.Running || len(j.Holding) > 0 {
		return "running"
	}
	return "ended"
}

func elapsed(j *runs.JobGroup) time.Duration { return j.Last.Sub(j.Start).Round(time.Second) }

func clock(t time.Time, o Options) string {
	zone := o.Zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).Format("2006-01-02 15:04:05")
}

func deviceName(index int) string {
	if index < 0 {
		return "–"
	}
	return strconv.Itoa(index)
}

// jobEnergy is what the devices of a job took.
func jobEnergy(j *runs.JobGroup) string {
	if j.Energy == nil {
		return words.Nothing
	}
	return words.Mark(model.Unsure) + runwords.Joules(*j.Energy)
}

// leftWords says what an ended job left behind.
func leftWords(j *runs.JobGroup) string {
	if n := leftBytes(j); len(j.Left) > 0 {
		return words.Bytes(n) + " accounted"
	}
	return ""
}

func leftBytes(j *runs.JobGroup) (n uint64) {
	for _, g := range j.Left {
		for _, b := range g.Bytes {
			n += b
		}
	}
	return n
}

// appendAligned writes rows with their columns aligned.
func appendAligned(dst []byte, rows [][]string) []byte {
	t := lines.Table{Columns: make([]lines.Column, len(rows[0]))}
	for _, r := range rows {
		t.Add(r...)
	}
	return appendTable(dst, &t)
}

// AppendJobsCSV writes jobs for scripts: a line for each device that a job had.
func AppendJobsCSV(dst []byte, a *runs.JobsAnswer) []byte {
	dst = append(dst, jobHeadsCSV...)
	for i := range a.Jobs {
		j := &a.Jobs[i]
		for k := range j.Devices {
			d := &j.Devices[k]
			dram, l1 := d.Peaks["dram"], d.Peaks["l1"]
			number := func(pool string, p runs.Peak) string {
				if _, ok := d.Peaks[pool]; !ok {
					return ""
				}
				return strconv.FormatUint(p.Bytes, 10)
			}
			dst = fmt.Appendf(dst, "%s,%s,%s,%d,%s,%s,%s,%d,%d,%s,%s,%s,%s,%s,%d,%d,%d,%d,%s\n", j.Kind, CSVField(jobName(j)), CSVField(words.Escape(j.User)), j.UID, jobState(j),
				j.Start.UTC().Format(time.RFC3339), j.Last.UTC().Format(time.RFC3339), int(elapsed(j).Seconds()), d.Index, CSVField(words.Escape(d.Board)),
				number("dram", dram), dram.Bound, number("l1", l1), l1.Bound, len(j.Holding), leftBytes(j), len(j.Runs), j.Failed, jobEnergyCSV(j))
		}
	}
	return dst
}

func jobEnergyCSV(j *runs.JobGroup) string {
	if j.Energy == nil {
		return ","
	}
	return fmt.Sprintf("%.1f,%s", *j.Energy, model.Unsure)
}

// AppendLeft says what jobs have left: processes that still hold devices, and what
// dead ones left in tt-metal's accounting. The word at the beginning of a line is
// for scripts: process or region.
func AppendLeft(dst []byte, a *runs.JobsAnswer) []byte {
	for i := range a.Jobs {
		j := &a.Jobs[i]
		for _, p := range j.Holding {
			what := "device " + words.Ranges(p.Devices)
			if len(p.Devices) == 0 {
				what = "chips that are behind no device of this host"
			}
			dst = fmt.Appendf(dst, "process %d (%s) of job %s holds %s\n", p.PID, words.Escape(p.Name), jobName(j), what)
		}
		for _, g := range j.Left {
			n := uint64(0)
			for _, b := range g.Bytes {
				n += b
			}
			state := "nobody uses it"
			if g.InUse {
				state = "a live process uses it"
			}
			dst = fmt.Appendf(dst, "region %s has %s of the dead process %d (%s) of job %s: %s\n", words.Escape(g.Region), words.Bytes(n), g.PID, words.Escape(g.Name), jobName(j), state)
		}
	}
	return dst
}
