package words

import (
	"github.com/ttmon/ttmon/internal/model"
)

// Cure is what would make a doubt go away, if something would that can be done
// from where the snapshot was made: nobody is told to start the ttmond that
// made it, and root is not told to be root.
func Cure(d model.Doubt, from model.Origin) string {
	switch d.Kind {
	case model.OtherThreads, model.GraphCapture:
		return exactCure
	case model.RegionDenied:
		return rights(from, "CAP_DAC_READ_SEARCH")
	case model.ProcessDenied, model.OwnerGuessed, model.SlotUnproven, model.HolderUnseen:
		return rights(from, "CAP_SYS_PTRACE")
	case model.ProcessesDenied, model.ProcessesHidden:
		if d.UID == 0 {
			return "that needs CAP_SYS_PTRACE"
		}
		if from == model.Daemon {
			return "ttmond would have to run as root"
		}
		return rights(from, "CAP_SYS_PTRACE")
	case model.RegionUnreachable, model.UsersHidden, model.NamespaceHidden:
		return "run ttmon on the host"
	case model.SlotsFull:
		if d.Count > 0 {
			return "see ttmon stale"
		}
	case model.NoticedLate:
		return "its next start is seen whole"
	}
	return ""
}

// exactCure is what sees the allocator itself.
const exactCure = "exact figures need ttmond with uprobes, or ttmon run"

// rights is who may look at what belongs to others. A ttmond may run as root
// and still lack the capability.
func rights(from model.Origin, capability string) string {
	if from == model.Daemon {
		return "ttmond needs root's " + capability + " for that"
	}
	return "start ttmond, or run as root"
}

// DoubtAndCure is the sentence for a doubt and what helps.
func DoubtAndCure(d model.Doubt, from model.Origin) string {
	return withCure(Doubt(d), Cure(d, from))
}

func withCure(text, cure string) string {
	if cure == "" {
		return text
	}
	return text + "; " + cure
}

// Source is where a figure comes from, in words.
func Source(s model.Source) string {
	switch s {
	case "":
		return "nobody"
	case model.FromTrack:
		return "libttmon in the process"
	case model.FromUprobe:
		return "its allocator (uprobes)"
	case model.FromSocket:
		return "the process itself"
	case model.FromFDInfo, model.FromDriver:
		return "the driver"
	case model.FromShm:
		return "tt-metal's shared memory"
	default: // of a newer ttmond
		return Escape(string(s))
	}
}

// SourceShort is Source in a word.
func SourceShort(s model.Source) string {
	switch s {
	case "":
		return "nobody"
	case model.FromTrack:
		return "libttmon"
	case model.FromUprobe:
		return "uprobes"
	case model.FromSocket:
		return "reported"
	case model.FromFDInfo, model.FromDriver:
		return "driver"
	case model.FromShm:
		return "tt-metal"
	default: // of a newer ttmond
		return Escape(string(s))
	}
}

// Basis is what the place of a chip was concluded from, in words.
func Basis(b model.Basis) string {
	switch b {
	case model.BySysfs:
		return "its serial number and ASIC id"
	case model.ByDescriptor:
		return "UMD's description of the host"
	case model.ByOrder:
		return "the order of the devices its process has open"
	case model.BySibling:
		return "the other chip of its board"
	case model.ByTray:
		return "its tray"
	default: // of a newer ttmond
		return Escape(string(b))
	}
}

// Condition says how a process that is still there is doing, where that is
// not as usual.
func Condition(p *model.Process) string {
	switch p.Condition {
	case "":
		return ""
	case model.Zombie:
		return "zombie: it has exited, and its parent has not waited for it yet"
	case model.Stopped:
		return "stopped by a signal or a debugger"
	default: // of a newer ttmond
		return Escape(string(p.Condition))
	}
}
