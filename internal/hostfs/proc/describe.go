package proc

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

const (
	forgetAfter = time.Minute // longer than any refresh interval of a view
	maxCmdline  = 4 << 10
)

// Describe returns what /proc says about each pid, in the given order. A pid
// that does not exist, is a zombie, or is only a thread of another process is
// Exited; one that may not be read is Running with its readings denied. Devices
// stays empty.
func (r *Reader) Describe(pids []int) []model.Process {
	r.StartSweep()
	r.users.refresh()
	out := make([]model.Process, len(pids))
	for i, pid := range pids {
		out[i] = r.describe(pid)
	}
	r.dropUnused(time.Now())
	r.EndSweep()
	return out
}

// dropUnused drops processes that were not described for a while.
func (r *Reader) dropUnused(now time.Time) {
	r.descriptors.dropUnused()
	for _, p := range r.known {
		if p.holds == 0 && now.Sub(p.lastUsed) > forgetAfter {
			r.remove(p)
		}
	}
}

func (r *Reader) describe(pid int) model.Process {
	p, err := r.Process(pid)
	if err != nil {
		return r.unreadable(pid, err)
	}
	r.readDescription(p)
	s := &p.stat
	out := model.Process{
		PID: p.PID, PPID: p.PPID, StartTicks: p.StartTicks, StartTime: StartTime(r.boot, p.StartTicks), State: model.Running,
		Name: model.Value(p.Name), Cmdline: p.cmdline,
		Container: p.placement.container, SystemdUnit: p.placement.unit,
	}
	p.addJob(&out)
	out.Reach = r.readReach(p)
	if p.UID >= 0 {
		out.UID, out.User = model.Value(p.UID), model.Value(r.users.name(p.UID))
	}
	if s.Gone() {
		markExited(&out)
		out.Condition = model.Zombie
		return out
	}
	out.CPU = p.cpu.update(s.CPU, p.statAt)
	out.Threads = model.Value(s.Threads)
	out.RSS = r.readRSS(p)
	switch compiles := p.compile.compiles(p); {
	case s.State == 'T' || s.State == 't':
		out.Condition = model.Stopped
	case compiles:
		out.Condition = model.Compiling
	}
	return out
}

// threadError is the error of a pid that is now a thread of another process:
// the process of that number has ended.
type threadError struct{}

func (threadError) Error() string { return "a thread of another process: " + unix.ESRCH.Error() }
func (threadError) Unwrap() error { return unix.ESRCH }

// readDescription reads the command line and cgroup when they are due.
func (r *Reader) readDescription(p *Process) {
	fresh := p.lastUsed.IsZero()
	p.lastUsed = p.statAt
	if !fresh && p.statAt.Sub(p.describedAt) < slowEvery {
		return
	}
	p.describedAt = p.statAt
	if n, err := p.dir.Read("cgroup", r.buf); err == nil {
		p.placement = parseCgroup(r.buf[:n])
		if uid := p.placement.container.Pod; uid != "" {
			pod := r.pods.find(uid)
			p.placement.container.Namespace, p.placement.container.PodName = pod.namespace, pod.name
		}
	}
	if !p.stat.KernelThread() && !p.stat.Gone() {
		p.workDir = r.readWorkDir(p)
	}
	if p.stat.Stack != 0 && p.cmdline.Known() && p.statAt.Sub(p.cmdlineAt) < titleEvery {
		return
	}
	p.cmdlineAt = p.statAt
	if kernel := p.stat.KernelThread() || p.stat.Gone(); !kernel || fresh {
		before := p.cmdline
		p.cmdline = r.readCmdline(p, kernel)
		if !kernel && (fresh || p.cmdline.V != before.V) { // a new program has a new environment
			p.environJob = r.readEnvironJob(p)
		}
	}
}

// readCmdline joins the arguments with blanks. Kernel threads have none and go by
// their name, as in ps; so do zombies that were not seen before.
func (r *Reader) readCmdline(p *Process, kernel bool) model.Reading[string] {
	if !kernel {
		b, err := r.Guard.read(p, "cmdline", make([]byte, 0, 512), maxCmdline)
		if err != nil {
			if hostfs.Status(err) == model.Hung {
				err = fmt.Errorf("cannot read the process's memory: %w", err)
			}
			return model.Missing[string](hostfs.Status(err), err.Error())
		}
		if line := joinArguments(b); line != "" {
			return model.Value(line)
		}
	}
	if p.cmdline.Known() {
		return p.cmdline // it exits, and has lost its memory first
	}
	return model.Value("[" + p.Name + "]")
}

// joinArguments turns the NULs between arguments into blanks. Programs that
// overwrite their title leave NULs or blanks behind it, which are cut off.
func joinArguments(b []byte) string {
	end := len(b)
	for end > 0 && (b[end-1] == 0 || b[end-1] == ' ') {
		end--
	}
	for i := range b[:end] {
		if b[i] == 0 {
			b[i] = ' '
		}
	}
	return string(b[:end])
}

func (r *Reader) readRSS(p *Process) model.Reading[uint64] {
	n, err := p.readKept(&p.files.statm, "statm", r.buf)
	if err != nil {
		return model.Missing[uint64](hostfs.Status(err), "")
	}
	pages, ok := parseStatm(r.buf[:n])
	if !ok {
		return model.Missing[uint64](model.Unsupported, "unknown format of statm")
	}
	return model.Value(pages * uint64(os.Getpagesize()))
}

// unreadable describes a pid whose files could not be read.
func (r *Reader) unreadable(pid int, err error) model.Process {
	status := hostfs.Status(err)
	switch {
	case noProcess(err):
		if why := r.whyHidden(pid); why != "" {
			return withoutReadings(pid, model.Running, model.Denied, why)
		}
		return exitedProcess(pid)
	case status == model.Denied:
		return withoutReadings(pid, model.Running, status, "/proc is mounted with hidepid: only root may read this process")
	case errors.Is(err, ErrForm):
		status = model.Unsupported
	}
	return withoutReadings(pid, model.Running, status, err.Error())
}

// exitedProcess describes a process that had exited before it was first read.
func exitedProcess(pid int) model.Process {
	p := withoutReadings(pid, model.Exited, model.Absent, "the process has exited")
	markExited(&p)
	return p
}

// withoutReadings is a process whose readings are all missing, for one reason.
func withoutReadings(pid int, state model.ProcessState, status model.Status, why string) model.Process {
	text, number := model.Missing[string](status, why), model.Missing[int](status, why)
	return model.Process{
		PID: pid, State: state, UID: number, User: text, Name: text, Cmdline: text, Threads: number,
		CPU: model.Missing[float64](status, why), RSS: model.Missing[uint64](status, why), Release: text, Type: text,
	}
}

// markExited marks a process as exited: it uses nothing any more.
func markExited(p *model.Process) {
	const why = "the process has exited"
	p.State = model.Exited
	p.CPU = model.Missing[float64](model.Absent, why)
	p.RSS = model.Missing[uint64](model.Absent, why)
	p.Threads = model.Missing[int](model.Absent, why)
	p.Release = model.Missing[string](model.Absent, why)
	p.Type = p.Release
}
