// Package runwords says runs (internal/book/runs) in words: how they ended, what they
// took, who they belong to. The tables of ttmon runs and the page use the same.
package runwords

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// End says how a run ended, and what it left.
func End(r *runs.Run) string {
	text := ending(&r.End)
	switch f := r.Failures; {
	case f == nil || f.Count == 0:
	case r.End.NoRoom:
		text = lack(f) + ", " + text
	default:
		text += ", " + failed(r)
	}
	if idle := r.Idle(r.Last); idle >= idleShown {
		text += ", idle for " + words.Duration(idle)
	}
	if resets(r) > 0 || r.End.Reset {
		text += ", device reset under it"
	}
	if left := Left(r); left != "" {
		text += ", left " + left
	}
	return text
}

// failed says how many requests for memory failed, and when, where the run failed
// not long after.
func failed(r *runs.Run) string {
	n := r.Failures.Count
	all := words.Mark(model.AtLeast) + words.Count(int(min(n, math.MaxInt)), "failed allocation")
	after, ok := r.FailedAfter()
	switch {
	case !ok:
		return all
	case n == 1:
		return words.Duration(after) + " after an allocation failed"
	}
	return words.Duration(after) + " after the last of " + all
}

// lack says what a run did not get.
func lack(f *runs.Failures) string {
	if f.Clash {
		return "L1 clash"
	}
	return "out of " + words.Escape(strings.ToUpper(f.Pool))
}

// Failures says how many requests for memory failed, and where the last one is
// shown; empty: none is known.
func Failures(r *runs.Run) string {
	f := r.Failures
	if f == nil || f.Count == 0 {
		return ""
	}
	text := words.Mark(model.AtLeast) + strconv.FormatUint(f.Count, 10) + " failed, the last: " + lack(f)
	if f.ID != "" {
		text += " (ttmon why " + words.Escape(f.ID) + ")"
	}
	return text
}

// idleShown is how long a run must be idle before that is shown.
const idleShown = time.Minute

func resets(r *runs.Run) (n int) {
	for i := range r.Devices {
		n += r.Devices[i].Resets
	}
	return n
}

// unknownExit says why an exit status is not known.
func unknownExit(why runs.UnknownExit) string {
	switch why {
	case runs.OldKernel:
		return ", status unknown: kernel before 6.15"
	case runs.OnlyParent:
		return ", status unknown"
	}
	return ""
}

func ending(e *runs.Ending) string {
	switch {
	case e.OutOfMemory:
		return "killed: host out of memory"
	case e.Kind == runs.Killed:
		return "killed by " + Signal(e.Signal)
	case e.Code != nil:
		return fmt.Sprintf("exit %d", *e.Code)
	}
	switch e.Kind {
	case runs.Running:
		return "running"
	case runs.Exited:
		return "exited" + unknownExit(e.Unknown)
	case runs.Closed:
		return "closed its devices"
	case runs.Unseen:
		return "ended unobserved"
	default:
		return "ended"
	}
}

// Signal is the name of a signal.
func Signal(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// Left says what a run left, by pool; empty: nothing.
func Left(r *runs.Run) string {
	sums := map[string]uint64{}
	bound := model.Exact
	for i := range r.Left {
		for pool, n := range r.Left[i].Bytes {
			sums[pool] += n
		}
		bound = max(bound, model.ParseBound(r.Left[i].Bound))
	}
	var list []string
	for _, pool := range model.Pools() {
		if n := sums[pool.String()]; n > 0 {
			list = append(list, words.FigureInText(model.BoundBytes(n, bound))+" in "+PoolName(pool))
		}
	}
	return strings.Join(list, ", ")
}

// PoolName is how a pool is called in a sentence.
func PoolName(p model.Pool) string {
	return map[model.Pool]string{model.DRAM: "DRAM", model.L1: "L1", model.L1Small: "L1_SMALL", model.Trace: "TRACE", model.CB: "CB", model.Kernel: "kernels"}[p]
}

// Mean is what the run held of a pool on average. Where a tenth of the run or more is
// not in it, it says how much is.
func Mean(r *runs.Run, p runs.Pool) string {
	return Over(r, words.Figure(p.MeanBytes()), p.Seconds)
}

// Over adds to a mean of how much of the run it is, where it is not of nearly all.
func Over(r *runs.Run, mean string, seconds float64) string {
	took := r.Took().Seconds()
	if seconds == 0 || seconds >= 0.9*took {
		return mean
	}
	return mean + " over " + words.Share(seconds/took)
}

// Job says to whom a run belongs, as words.Job does of a process.
func Job(r *runs.Run) string {
	p := model.Process{SystemdUnit: r.Unit, Container: model.Container{ID: r.Container}}
	if j := r.Job; j != nil {
		switch j.Kind {
		case runs.JobSlurm:
			p.SlurmJob = j.ID
		case runs.JobPod:
			p.Container.Pod, p.Container.PodName, p.Container.Namespace = j.ID, j.Name, j.Namespace
		}
	}
	return words.Job(&p)
}

// User is whose run it is.
func User(r *runs.Run) string {
	switch {
	case r.User != "":
		return words.Escape(r.User)
	case r.UID >= 0:
		return fmt.Sprint(r.UID)
	}
	return words.Nothing
}

// Reach says whom to ask about a run; empty: no more than the user is known.
func Reach(r *runs.Run) string {
	p := model.Process{User: model.Value(r.User), SystemdUnit: r.Unit, Reach: model.Reach{FullName: r.FullName, TTY: r.TTY, SSH: r.SSH, Dir: r.Dir}}
	if r.User == "" {
		return ""
	}
	if j := r.Job; j != nil && j.Kind == runs.JobSlurm {
		p.SlurmJob, p.Reach.JobName = j.ID, j.Name
	}
	return words.Reach(&p)
}

// Command is what ran.
func Command(r *runs.Run) string {
	switch {
	case strings.TrimSpace(r.Command) != "":
		return words.Escape(r.Command)
	case r.Name != "":
		return "[" + words.Escape(r.Name) + "]"
	}
	return words.Nothing
}

// Devices are the numbers of a run's devices: 0-7.
func Devices(r *runs.Run) string {
	list := r.Indexes()
	if len(list) == 0 {
		return words.Nothing
	}
	return words.Ranges(slices.Compact(list))
}

// Energy says what the devices of a run took while it ran.
func Energy(r *runs.Run) string {
	joules, known := r.Energy()
	if !known {
		return words.Missing(model.Absent)
	}
	return words.Mark(model.Unsure) + Joules(joules)
}

// Joules says an energy, in watt-hours.
func Joules(j float64) string {
	wh := j / 3600
	switch {
	case wh >= 1e5:
		return words.Fixed(wh/1000, 0) + " kWh"
	case wh >= 1000:
		return words.Fixed(wh/1000, 1) + " kWh"
	case wh >= 100:
		return words.Fixed(wh, 0) + " Wh"
	case wh >= 1:
		return words.Fixed(wh, 1) + " Wh"
	}
	return words.Fixed(wh*1000, 0) + " mWh"
}

// Activity is the mean of the estimate over all devices of a run.
func Activity(r *runs.Run) string {
	var sum, seconds, longest float64
	for i := range r.Devices {
		if a := r.Devices[i].Activity; a != nil {
			sum, seconds, longest = sum+a.Mean*a.Seconds, seconds+a.Seconds, max(longest, a.Seconds)
		}
	}
	if seconds == 0 {
		return words.Missing(model.Absent)
	}
	return Over(r, words.Mark(model.Unsure)+words.Percent(sum/seconds), longest)
}

// Busy is how busy a run had its devices, where that was measured, or what was
// estimated.
func Busy(r *runs.Run) string {
	if b, known := r.Busy(); known {
		return busyness(b)
	}
	return Activity(r)
}

// DeviceBusy is the same of one device of a run.
func DeviceBusy(r *runs.Run, d *runs.Device) string {
	if b, known := d.Busy(); known {
		return busyness(b)
	}
	if a := d.Activity; a != nil && a.Seconds > 0 {
		return Over(r, words.Mark(model.Unsure)+words.Percent(a.Mean), a.Seconds)
	}
	return words.Missing(model.Absent)
}

func busyness(b runs.Busyness) string {
	return words.Busy(&model.Work{Busy: model.Value(b.Ratio), Bound: b.Bound, Cause: b.Cause})
}

// When says a moment as people do: today 02:14, yesterday 02:13, 2026-11-12 02:13.
func When(t, now time.Time, zone *time.Location) string {
	t, now = t.In(zone), now.In(zone)
	clock := t.Format("15:04")
	day := func(t time.Time) time.Time { y, m, d := t.Date(); return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	switch day(now).Sub(day(t)) {
	case 0:
		return "today " + clock
	case 24 * time.Hour:
		return "yesterday " + clock
	}
	return t.Format("2006-01-02 ") + clock
}
