package doctor

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

const startDaemon = "systemctl enable --now ttmond"

func (e *examiner) daemon() {
	d := &e.Daemon
	switch {
	case !d.Answers && d.Why != "":
		e.addHost(Daemon, Warning, "ttmond_silent", "it does not respond: "+words.Escape(d.Why), "systemctl status ttmond; journalctl -u ttmond")
	case !d.Answers:
		e.addHost(Daemon, Hint, "ttmond_absent", "not running: no history, no alerts, no exact memory of unmodified programs, nothing of other users' programs", "install the package ttmond; if it is installed: "+startDaemon)
	case len(d.Problems) > 0:
		e.addHost(Daemon, Critical, "ttmond_problem", joined(d.Problems), "ttmon doctor --daemons; journalctl -u ttmond")
	case len(d.Warnings) > 0:
		e.addHost(Daemon, Warning, "ttmond_warning", joined(d.Warnings), "ttmon doctor --daemons")
	case d.Version != e.Version && e.Version != "":
		e.addHost(Daemon, Hint, "ttmond_version", fmt.Sprintf("ttmond is %s, this ttmon is %s", words.Escape(d.Version), words.Escape(e.Version)), "ttmon daemon reload")
	default:
		e.addHost(Daemon, OK, "ttmond", "ttmond "+words.Escape(d.Version)+" responds at "+words.Escape(d.Path), "")
	}
}

// waitsCost is what uprobe.waits was measured to cost: docs/work.md.
const waitsCost = "about 1 µs per enqueue and 11 µs per wait"

func (e *examiner) uprobes() {
	d := &e.Daemon
	switch {
	case d.Watch == apitype.WatchOn:
		for _, l := range d.Unwatched {
			e.addHost(Uprobes, Hint, "library", words.Escape(l), "ttmon run works with every release; a newer ttmond may know this one")
		}
		text := "ttmond watches allocators: " + count(d.Watched, "program") + " now"
		if d.Waits {
			text += "; what they enqueue and wait for, too, at " + waitsCost + " (uprobe.waits)"
		}
		e.addHost(Uprobes, OK, "uprobes", text, "")
	case d.Watch == apitype.WatchStarting:
		e.addHost(Uprobes, OK, "uprobes_starting", "ttmond has just started and is looking for running programs", "")
	case d.Watch == apitype.WatchOff:
		e.addHost(Uprobes, Hint, "uprobes_off", "disabled in ttmond: programs are not watched", "set uprobe.enabled = true in ttmond's configuration, and start it without --no-uprobe")
	case d.Watch == apitype.WatchUnavailable:
		e.addHost(Uprobes, Hint, "uprobes_unavailable", "ttmond cannot watch allocators: "+words.Escape(d.Reason), "")
	case d.Watch == apitype.WatchFailed:
		e.addHost(Uprobes, Warning, "uprobes_failed", "ttmond no longer watches allocators: "+words.Escape(d.Reason), "systemctl restart ttmond")
	default:
		if text, do := obstacle(e.Setup); text != "" {
			e.addHost(Uprobes, Hint, "uprobes_impossible", text, do)
			return
		}
		e.addHost(Uprobes, OK, "uprobes_possible", "this kernel supports watching allocators, by a ttmond that runs as root", "")
	}
}

// obstacle is what of the kernel is in the way of watching allocators.
func obstacle(s *model.Setup) (text, do string) {
	var major, minor int
	_, err := fmt.Sscanf(s.Kernel, "%d.%d", &major, &minor)
	switch {
	case err == nil && (major < 6 || major == 6 && minor < 6):
		return "Linux " + words.Escape(s.Kernel) + " cannot watch several functions at once; 6.6 can", "update the kernel, or start programs with ttmon run"
	case !s.BTF:
		return "the kernel has no BTF type information (/sys/kernel/btf/vmlinux)", "use a kernel with CONFIG_DEBUG_INFO_BTF, or start programs with ttmon run"
	case s.Lockdown == "confidentiality":
		return "the kernel is locked down (confidentiality): it does not allow watching programs", "start it without lockdown=confidentiality, or start programs with ttmon run"
	}
	return "", ""
}

// memory says of which programs the memory is known exactly, and what is
// missing for the others.
func (e *examiner) memory() {
	var exact, reported, counted, silent []string
	for i := range e.Snapshot.Processes {
		p := &e.Snapshot.Processes[i]
		if p.State != model.Running || len(p.Devices) == 0 {
			continue
		}
		name := fmt.Sprintf("%d %s", p.PID, words.Foreign(p.Name))
		switch best(p) {
		case model.FromTrack, model.FromUprobe:
			exact = append(exact, name)
		case model.FromSocket, model.FromFDInfo, model.FromDriver:
			reported = append(reported, name)
		case model.FromShm:
			counted = append(counted, name)
		default:
			silent = append(silent, name)
		}
	}
	cure := e.exactly()
	if len(counted) > 0 {
		e.addHost(Memory, Hint, "memory_counted", "known from tt-metal's own statistics, which miscount (~): "+some(counted), cure)
	}
	if len(silent) > 0 {
		e.addHost(Memory, Hint, "memory_unknown", "memory unknown for: "+some(silent), "ttmon smi -q -d MEMORY,PIDS gives the reason for each; "+cure)
	}
	if len(reported) > 0 {
		e.addHost(Memory, OK, "memory_reported", "as they report it themselves: "+some(reported), "")
	}
	switch {
	case len(exact) > 0:
		e.addHost(Memory, OK, "memory_exact", "exact: "+some(exact), "")
	case len(counted)+len(silent)+len(reported) == 0 && len(e.Snapshot.Devices) > 0:
		e.addHost(Memory, OK, "memory_unused", "no program uses a device now; "+cure, "")
	}
}

// best is the source of a process's figures.
func best(p *model.Process) model.Source {
	for i := range p.Devices {
		if p.Devices[i].Source != "" {
			return p.Devices[i].Source
		}
	}
	return ""
}

// exactly is what has to be done for exact figures on this host.
func (e *examiner) exactly() string {
	run := "start programs with ttmon run"
	switch e.Daemon.Watch {
	case apitype.WatchOn, apitype.WatchStarting:
		return "ttmond has exact figures of programs started from now on"
	case apitype.WatchOff, apitype.WatchUnavailable, apitype.WatchFailed:
		return "for exact figures fix what stops ttmond from watching (above), or " + run
	}
	if text, _ := obstacle(e.Setup); text != "" {
		return "for exact figures " + run
	}
	return "for exact figures start ttmond as root (" + startDaemon + "), or " + run
}

// some names a few, and how many others there are.
func some(list []string) string {
	const few = 4
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(list[:few-1], ", "), len(list)-few+1)
}
