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

// process is what a Reader remembers of a process between calls.
type process struct {
	identity
	startTime time.Time
	cpu       cpuMeter

	// The slow part is read again when the name changes (an exec) and every
	// slowEvery otherwise: user, command line and cgroup hardly ever change.
	slowAt  time.Time
	name    string
	uid     int // -1 if unknown
	cmdline model.Reading[string]
	place   placement
	inner   int // pid in the innermost namespace; 0 if unknown

	used time.Time // last asked for
}

const (
	slowEvery   = 5 * time.Second
	forgetAfter = time.Minute // longer than any refresh interval of a view
	maxCmdline  = 4 << 10
)

// Describe tells what /proc knows about each pid, in the given order. A pid
// that is not there, is a zombie, or is only a thread of another process comes
// back as Exited; one that may not be looked at as Running with its readings
// denied. Devices stays empty.
func (r *Reader) Describe(pids []int) []model.Process {
	r.begin()
	r.users.refresh()
	out := make([]model.Process, len(pids))
	for i, pid := range pids {
		out[i] = r.describe(pid)
	}
	r.forget(time.Now())
	return out
}

// forget drops processes nobody has asked for in a while.
func (r *Reader) forget(now time.Time) {
	r.descriptors.forget()
	for pid, p := range r.known {
		if now.Sub(p.used) > forgetAfter {
			delete(r.known, pid)
		}
	}
	for id, s := range r.stuck {
		if s.returned() {
			delete(r.stuck, id)
		}
	}
}

func (r *Reader) describe(pid int) model.Process {
	dir, err := r.open(pid)
	if err != nil {
		return r.unreadable(pid, err)
	}
	defer dir.Close()
	s, at, err := r.readStat(dir)
	if err != nil {
		return r.unreadable(pid, err)
	}
	p, err := r.remember(pid, dir, &s, at)
	if err != nil {
		return r.unreadable(pid, err)
	}
	out := p.describe(r)
	out.PPID = s.PPID
	if s.Gone() {
		exited(&out)
		out.Notes = append(out.Notes, fmt.Sprintf("zombie: it has exited, and its parent %d has not taken notice", s.PPID))
		return out
	}
	out.CPU = p.cpu.update(s.CPU, at)
	out.Threads = model.Value(s.Threads)
	out.RSS = r.readRSS(dir)
	if s.State == 'T' || s.State == 't' {
		out.Notes = append(out.Notes, "stopped by a signal or a debugger")
	}
	return out
}

// readStat reads stat and says when. The name in it lives in r.buf only until
// the next read.
func (r *Reader) readStat(dir hostfs.Dir) (Stat, time.Time, error) {
	n, err := dir.Read("stat", r.buf)
	at := time.Now()
	if err != nil {
		return Stat{}, at, err
	}
	s, err := ParseStat(r.buf[:n])
	return s, at, err
}

// errThread is the error of a pid that is now a thread of another process:
// the process of that number has ended.
var errThread = fmt.Errorf("a thread of another process: %w", unix.ESRCH)

// remember returns what is known of the process behind dir, and reads the
// slow part where that is due. It uses r.buf, so s.Comm is copied first.
func (r *Reader) remember(pid int, dir hostfs.Dir, s *Stat, now time.Time) (*process, error) {
	p := r.known[pid]
	fresh := p == nil || p.start != s.Start
	if !fresh && string(s.Comm) == p.name && now.Sub(p.slowAt) < slowEvery {
		p.used = now
		return p, nil
	}
	if fresh {
		p = &process{identity: identity{pid, s.Start}, startTime: r.startTime(s.Start)}
	}
	p.name = string(s.Comm)
	kernel := s.KernelThread() || s.Gone()
	n, err := dir.Read("status", r.buf)
	if err != nil {
		return nil, err
	}
	st := parseStatus(r.buf[:n])
	if st.tgid != 0 && st.tgid != pid {
		return nil, errThread
	}
	p.uid, p.inner = st.uid, 0
	if len(st.nsPIDs) > 0 {
		p.inner = st.nsPIDs[len(st.nsPIDs)-1]
	}
	if n, err := dir.Read("cgroup", r.buf); err == nil {
		p.place = parseCgroup(r.buf[:n])
		if uid := p.place.container.Pod; uid != "" {
			pod := r.pods.find(uid)
			p.place.container.Namespace, p.place.container.PodName = pod.namespace, pod.name
		}
	}
	if !kernel || fresh {
		p.cmdline = r.readCmdline(p, dir, kernel)
	}
	p.slowAt, p.used = now, now
	r.known[pid] = p
	return p, nil
}

// readCmdline joins the arguments with blanks. Kernel threads and zombies
// have none and go by their name, as in ps.
func (r *Reader) readCmdline(p *process, dir hostfs.Dir, kernel bool) model.Reading[string] {
	if !kernel {
		b, err := r.readGuarded(p.identity, dir, "cmdline", make([]byte, 0, 512), maxCmdline)
		if err != nil {
			return model.Missing[string](hostfs.Status(err), err.Error())
		}
		if line := joinArguments(b); line != "" {
			return model.Value(line)
		}
	}
	return model.Value("[" + p.name + "]")
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

func (r *Reader) readRSS(dir hostfs.Dir) model.Reading[uint64] {
	n, err := dir.Read("statm", r.buf)
	if err != nil {
		return model.Missing[uint64](hostfs.Status(err), "")
	}
	pages, ok := parseStatm(r.buf[:n])
	if !ok {
		return model.Missing[uint64](model.Unsupported, "statm is in a form we do not know")
	}
	return model.Value(pages * uint64(os.Getpagesize()))
}

// describe is the remembered part of a process.
func (p *process) describe(r *Reader) model.Process {
	out := model.Process{
		PID: p.pid, StartTicks: p.start, StartTime: p.startTime, State: model.Running,
		Name: model.Value(p.name), Cmdline: p.cmdline,
		Container: p.place.container, SlurmJob: p.place.slurmJob, SystemdUnit: p.place.unit,
	}
	if p.uid >= 0 {
		out.UID, out.User = model.Value(p.uid), model.Value(r.users.name(p.uid))
	}
	return out
}

// unreadable describes a pid whose files could not be read.
func (r *Reader) unreadable(pid int, err error) model.Process {
	status := hostfs.Status(err)
	switch {
	case noProcess(err):
		if why := r.concealed(pid); why != "" {
			return undescribed(pid, model.Running, model.Denied, why)
		}
		return neverSeen(pid)
	case status == model.Denied:
		return undescribed(pid, model.Running, status, "/proc is mounted with hidepid: only root may look at this process")
	case errors.Is(err, ErrForm):
		status = model.Unsupported
	}
	return undescribed(pid, model.Running, status, err.Error())
}

// neverSeen is all there is to say about a process that had exited before
// anybody looked.
func neverSeen(pid int) model.Process {
	p := undescribed(pid, model.Exited, model.Absent, "the process has exited")
	exited(&p)
	return p
}

// undescribed is a process none of whose readings could be had.
func undescribed(pid int, state model.ProcessState, status model.Status, why string) model.Process {
	text, number := model.Missing[string](status, why), model.Missing[int](status, why)
	return model.Process{
		PID: pid, State: state, UID: number, User: text, Name: text, Cmdline: text, Threads: number,
		CPU: model.Missing[float64](status, why), RSS: model.Missing[uint64](status, why), Release: text,
	}
}

// exited marks a process as gone: it uses nothing any more.
func exited(p *model.Process) {
	const why = "the process has exited"
	p.State = model.Exited
	p.CPU = model.Missing[float64](model.Absent, why)
	p.RSS = model.Missing[uint64](model.Absent, why)
	p.Threads = model.Missing[int](model.Absent, why)
	p.Release = model.Missing[string](model.Absent, why)
}
