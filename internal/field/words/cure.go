package words

import (
	"github.com/ttmon/ttmon/internal/model"
)

// Cure is what would make a doubt go away, if something would that can be done
// from where the snapshot was made: no user is told to start the ttmond that
// made it, and root is not told to be root.
func Cure(d model.Doubt, from model.Origin) string {
	switch d.Kind {
	case model.OtherThreads, model.GraphCapture:
		return exactCure
	case model.RegionDenied:
		return rights(from, "CAP_DAC_READ_SEARCH")
	case model.ProcessDenied, model.OwnerGuessed, model.OpenUnproven, model.SlotUnproven, model.HolderUnseen:
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
			return "see ttmon mem --stale"
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

// sources are where figures come from: in words, and in one.
var sources = map[model.Source][2]string{
	"":               {"unknown", "unknown"},
	model.FromTrack:  {"libttmon in the process", "libttmon"},
	model.FromUprobe: {"its allocator (uprobes)", "uprobes"},
	model.FromSocket: {"the process itself", "reported"},
	model.FromFDInfo: {"the driver", "driver"},
	model.FromDriver: {"the driver", "driver"},
	model.FromShm:    {"tt-metal's shared memory", "tt-metal"},
}

// Source is where a figure comes from, in words.
func Source(s model.Source) string { return source(s, 0) }

// SourceShort is Source in a word.
func SourceShort(s model.Source) string { return source(s, 1) }

func source(s model.Source, form int) string {
	if w, ok := sources[s]; ok {
		return w[form]
	}
	return Escape(string(s)) // of a newer ttmond
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
	case model.Stuck:
		return "may be stuck"
	case model.Compiling:
		return "compiling"
	default: // of a newer ttmond
		return Escape(string(p.Condition))
	}
}
