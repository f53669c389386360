package words

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Doubt is the sentence for a doubt, without what could be done about it. It
// is safe for a terminal. A kind that this ttmon does not know says what its
// Detail says: that is where a newer ttmond's own sentence is kept.
func Doubt(d model.Doubt) string {
	p := phraseOf(&d)
	if p.name == "" {
		return p.text
	}
	return p.noun.one + " " + p.name + ": " + p.text
}

// KnowsDoubt reports whether there is a sentence for a kind.
func KnowsDoubt(k model.DoubtKind) bool { return !isNew(&model.Doubt{Kind: k}) }

// phrase is a doubt in words: whom it is about, and what is said of them,
// worded so that it holds for one and for many.
type phrase struct {
	noun noun
	name string // empty: of whatever the sentence stands beside
	text string
	new  bool // of a kind that this ttmon does not know
}

type noun struct{ one, many string }

var (
	aProcess = noun{"process", "processes"}
	aSlot    = noun{"slot of", "slots of"} // what tt-metal calls a process's place in a region
)

// notCounted is the end of many sentences.
const notCounted = "not in the figures"

func phraseOf(d *model.Doubt) phrase {
	if text, ok := aboutFigures(d); ok {
		return phrase{text: text, noun: aProcess, name: pidName(d)}
	}
	if text, ok := aboutUnknown(d); ok {
		return phrase{text: text, noun: aProcess, name: pidName(d)}
	}
	if p, ok := aboutChip(d); ok {
		return p
	}
	if text, ok := aboutOpeners(d); ok {
		return phrase{text: text}
	}
	if text, ok := aboutRemoval(d); ok {
		return phrase{text: text}
	}
	return phrase{text: Escape(d.Detail), new: true}
}

func pidName(d *model.Doubt) string {
	if d.PID == 0 {
		return ""
	}
	return strconv.Itoa(d.PID)
}

// aboutFigures are the doubts about the figures of one process.
func aboutFigures(d *model.Doubt) (string, bool) {
	switch d.Kind {
	case model.OtherThreads:
		return release(d) + " counts what one thread allocates and frees: the figures may be too high or too low", true
	case model.GraphCapture:
		return release(d) + " counts tensors of a graph capture that do not exist, and stops counting after a capture that began before the device was opened", true
	case model.SlotAdopted:
		return "has the number of a dead process" + named(d.Name) + " and counts on top of what that one left, which is taken off", true
	case model.SlotMaybeAdopted:
		return "a process died on the chip before ttmon started, and the figures may include what it left", true
	case model.OwnerGuessed:
		return "recognised by pid, name and start time: its mappings cannot be read", true
	case model.SlotShared:
		return "counted in one place together with " + pids(d.PIDs), true
	case model.RecordsErased:
		return "another process erased the record of what was held before", true
	case model.SlotsFull:
		text := "found no free place in the accounting of the chip, " + notCounted
		if d.Count > 0 {
			text += " (" + plural(d.Count, "place is", "places are") + " taken by dead processes)"
		}
		return text, true
	case model.FigureImpossible:
		return "a figure that cannot be, wrapped or more than the chip has, is left out", true
	default:
		return aboutReports(d)
	}
}

// aboutReports are the doubts about figures that a process reports itself, or
// that were watched.
func aboutReports(d *model.Doubt) (string, bool) {
	switch d.Kind {
	case model.ReportLate:
		since := ""
		if d.Detail != "" {
			since = ", which began " + Escape(d.Detail)
		}
		return "started before ttmond's account" + since + ": what it held before is " + notCounted, true
	case model.ReportOverLimit:
		return "more buffers than are tracked: the rest is " + notCounted, true
	case model.ReportRejected:
		return plural(d.Count, "report", "reports") + " could not be parsed", true
	case model.NoticedLate:
		return "started before its allocator was watched: pools that it has not used since are " + notCounted, true
	case model.RequestUnknown:
		return plural(d.Count, "buffer", "buffers") + " whose requested size is not known count as the blocks that they take: the figures may be too high", true
	case model.PerCoreL1:
		return "its allocator gives out L1 core by core (HYBRID), and not all of that was seen: its L1 is " + notCounted, true
	case model.EventsLost:
		return plural(d.Count, "event", "events") + " of its allocator were lost", true
	case model.TooFast:
		often := "too often"
		if d.Count > 0 {
			often = fmt.Sprintf("%d times a second", d.Count)
		}
		return "calls its allocator " + often + " and is no longer watched", true
	case model.ChipUnknown:
		return "the chips it allocates on are unknown, " + notCounted, true
	case model.SourcesDisagree:
		text := Source(d.Source) + " disagrees"
		if d.Detail != "" {
			text += ": " + Escape(d.Detail)
		}
		return text, true
	case model.NotBelieved:
		where := ""
		if len(d.Devices) > 0 {
			where = " on " + devices(d.Devices)
		}
		return "reports" + where + " are rejected: the device is not open there, or the chip has less", true
	case model.OpenUnproven:
		return "whether it has the device open cannot be read", true
	case model.Unopened:
		return "it does not have the device open (alloc.unopened)", true
	case model.NumberUnknown:
		return fmt.Sprintf("reports for device %d, which this host does not have", d.Count), true
	}
	return "", false
}

// aboutUnknown are the doubts about a process of which nothing is known.
func aboutUnknown(d *model.Doubt) (string, bool) {
	switch d.Kind {
	case model.ProcessDenied:
		return whose(d.UID) + ", and cannot be read: " + notCounted, true
	case model.ProcessUnreadable:
		return "cannot be read" + detail(d) + ", " + notCounted, true
	case model.RegionUnreachable:
		return "accounts in a file that cannot be reached from here, " + notCounted, true
	case model.NotTTMetal:
		return "maps neither tt-metal nor the device, so it holds nothing", true
	case model.LibraryUnseen:
		return "drives the device without libtt_metal.so (a tool, or a program that tt-metal is linked into), " + notCounted, true
	case model.OldRelease:
		return release(d) + " keeps no statistics, " + notCounted, true
	case model.TrackingDisabled:
		return "started with tt-metal's statistics disabled, " + notCounted, true
	case model.ShutOut:
		return fmt.Sprintf("cannot account: prevented by %s, which is %s: %s", Escape(d.Region), whose(d.UID), notCounted), true
	case model.LayoutMismatch:
		return fmt.Sprintf("%s has layout %d, in which its release cannot account: %s", Escape(d.Region), d.Version, notCounted), true
	case model.NotAttached:
		return "uses tt-metal but accounts nowhere, " + notCounted, true
	case model.OtherChipsOnly:
		return "accounts for other chips, and for none of this device", true
	case model.AllocatorUnknown:
		return "its tt-metal release keeps blocks in an unknown way and cannot be watched: " + notCounted, true
	case model.TooManyBlocks:
		return fmt.Sprintf("has more than %d live blocks and is no longer watched: %s", d.Count, notCounted), true
	case model.LibraryUnwatched:
		return "its library cannot be watched" + detail(d) + ", " + notCounted, true
	case model.NothingKnown:
		return "does not account for its memory, " + notCounted, true
	}
	return "", false
}

// aboutChip are the doubts about a chip or a device as a whole.
func aboutChip(d *model.Doubt) (p phrase, ok bool) {
	p.noun = aSlot
	switch d.Kind {
	case model.SlotUnseen:
		p.name = slotName(d)
		p.text = "its process cannot be seen from here, dead or in another container: " + notCounted
	case model.SlotUnproven:
		p.name = slotName(d)
		p.text = "whether it is process " + strconv.Itoa(d.PID) + "'s cannot be read: " + notCounted
	case model.SlotUndecided:
		p.name = slotName(d)
		p.text = "there was no time to find its process: " + notCounted
	case model.SlotsChanging:
		p.text = "the accounting changed while it was read: the figures may be of two moments"
	case model.SlotsOverflowed:
		p.text = "more processes account than there is room for: some are " + notCounted
	case model.RegionDenied:
		p.text = "the accounting is " + whose(d.UID) + ", and only that user and root may read it"
	case model.RegionUnreadable:
		p.text = "the accounting could not be read" + detail(d)
	case model.LayoutUnknown:
		p.text = fmt.Sprintf("the accounting has layout %d, which this ttmon does not know: a newer one may", d.Version)
	case model.RegionMisnamed:
		p.text = fmt.Sprintf("%s says that it is of chip %d: %s", Escape(d.Region), d.Chip, notCounted)
	case model.ChipAmbiguous:
		who := ""
		if len(d.PIDs) > 0 {
			who = " (" + pids(d.PIDs) + ")"
		}
		p.text = fmt.Sprintf("what is held on chip %d%s is on one of %s, and it is not known which", d.Chip, who, devices(d.Devices))
	case model.ChipInferred:
		p.text = fmt.Sprintf("accounting was matched to this chip by %s", Basis(d.Basis))
	case model.Unaccounted:
		p.text = "in use, and no process accounts for its memory"
	case model.ShmUnreadable:
		p.text = "the directory of the accounting files could not be read" + detail(d)
	default:
		return phrase{}, false
	}
	return p, true
}

// aboutOpeners are those about how a device is open, and who could be seen.
func aboutOpeners(d *model.Doubt) (string, bool) {
	switch d.Kind {
	case model.UsersHidden:
		return "open " + plural(d.Count, "time", "times") + " in processes that cannot be seen from here", true
	case model.UsersUnknown:
		return "who has it open could not be found out" + detail(d), true
	case model.InheritedFromExited:
		return "inherited from process " + strconv.Itoa(d.PID) + ", which has exited", true
	case model.InheritedFromSeveral:
		return fmt.Sprintf("inherited from one of %d processes that opened it and do not hold it any more", d.Count), true
	case model.InheritedFromUnknown:
		return "inherited from an opener that is not known", true
	case model.HandedOn:
		return "handed on by process " + strconv.Itoa(d.PID) + ", which does not hold it any more", true
	case model.MappedOnly:
		return "its descriptors are closed, and it still maps the device", true
	case model.NamespaceHidden:
		return "in a pid namespace that cannot be seen from here", true
	case model.NumberForeign:
		return "the driver lists a number of the opener's own pid namespace, and no process that can be seen fits", true
	case model.HolderUnseen:
		return "not among the processes that may be looked into", true
	case model.OpenerExited:
		return "process " + strconv.Itoa(d.PID) + " opened it and has exited; no process was found that holds it now", true
	case model.OpenerHandedOn:
		return "process " + strconv.Itoa(d.PID) + " opened it and no longer holds it; no process was found that does", true
	case model.ProcessesHidden:
		return "processes of other users are hidden (hidepid)", true
	case model.ProcessesDenied:
		return plural(d.Count, "process", "processes") + " may not be looked into", true
	case model.ProcessesGuarded:
		return plural(d.Count, "process", "processes") + " may not be looked into, not even by root (a security module, or another user namespace)", true
	case model.ProcessesSkipped:
		return plural(d.Count, "process", "processes") + " could not be looked into this time", true
	}
	return "", false
}

// aboutRemoval are the reasons why a region cannot be removed.
func aboutRemoval(d *model.Doubt) (string, bool) {
	switch d.Kind {
	case model.RegionInUse:
		if len(d.PIDs) == 0 {
			return "in use by live processes", true
		}
		return "in use by " + pids(d.PIDs), true
	case model.RegionNameless:
		return "its name is removed already; it goes with the last process that maps it", true
	case model.OwnersUnseen:
		return "not all of its processes can be seen from here, and one may be alive", true
	}
	return "", false
}

func release(d *model.Doubt) string {
	if d.Release == "" {
		return "its release"
	}
	return "release " + Escape(d.Release)
}

// whose is an owner; one that may not be told is below 0.
func whose(uid int) string {
	if uid < 0 {
		return "another user's"
	}
	return "uid " + strconv.Itoa(uid) + "'s"
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " (" + Escape(name) + ")"
}

// slotName is a slot by the number its process had in its own namespace.
func slotName(d *model.Doubt) string {
	if d.Name == "" {
		return strconv.Itoa(d.SlotPID)
	}
	return strconv.Itoa(d.SlotPID) + " " + Escape(d.Name)
}

func detail(d *model.Doubt) string {
	if d.Detail == "" {
		return ""
	}
	return " (" + Escape(d.Detail) + ")"
}

// pids is "process 3", "processes 3, 4 and 2 more".
func pids(list []int) string {
	names := make([]string, len(list))
	for i, pid := range list {
		names[i] = strconv.Itoa(pid)
	}
	return several(aProcess, names)
}

func devices(list []int) string {
	if len(list) == 1 {
		return "device " + strconv.Itoa(list[0])
	}
	return "devices " + Ranges(list)
}

// mostNamed is how many are named before the rest is only counted.
const mostNamed = 3

// several names a few and counts the rest: "processes 3, 4, 5 and 2 more".
func several(n noun, names []string) string {
	switch {
	case len(names) == 1:
		return n.one + " " + names[0]
	case len(names) <= mostNamed+1:
		return n.many + " " + strings.Join(names, ", ")
	default:
		return n.many + " " + strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-mostNamed)
	}
}
