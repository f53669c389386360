package model

import (
	"slices"
)

// Doubt is one reason why a memory figure may not be the whole truth, or why
// there is none. Sources state doubts, collect reasons with them, and only
// words turns one into a sentence.
type Doubt struct {
	Kind DoubtKind

	// What it is about. Each kind says which of these it has.
	PID     int    // the process, by the host's number
	PIDs    []int  // or several
	SlotPID int    // a number in the writer's own pid namespace
	UID     int    // who owns the process or the region
	Chip    uint64 // unique id
	Devices []int  // kernel indexes
	Region  string // path of an accounting file
	Release string `see:"proc"` // of tt-metal or ttnn; empty if not known
	Name    string `see:"proc"` // of a process, raw
	Version int    // of a layout
	Count   int
	Source  Source // the other one, of a disagreement
	Basis   Basis
	Detail  string // what the system said, raw
}

// DoubtKind is the kind of a doubt. DoubtKinds has a row for each.
type DoubtKind string

// Doubts about the figures of one process.
const (
	// OtherThreads: its release accounts for one thread only. (Release)
	OtherThreads DoubtKind = "other_threads"
	// GraphCapture: its release counts tensors of a graph capture that do not
	// exist, and stops counting after one that began before the device was
	// opened; neither can be seen from outside. (Release)
	GraphCapture DoubtKind = "graph_capture"
	// SlotAdopted: it was given the pid of a dead process and counts on top
	// of what that one left, which was taken off. (Name: of the dead)
	SlotAdopted DoubtKind = "slot_adopted"
	// SlotMaybeAdopted: a process died on the chip before we started, and the
	// slot may hold that one's bytes as well.
	SlotMaybeAdopted DoubtKind = "slot_maybe_adopted"
	// OwnerGuessed: the slot is its own by pid, name and start time; what it
	// maps cannot be read.
	OwnerGuessed DoubtKind = "owner_guessed"
	// SlotShared: several processes account in one slot. (PIDs)
	SlotShared DoubtKind = "slot_shared"
	// RecordsErased: another process erased its records.
	RecordsErased DoubtKind = "records_erased"
	// SlotsFull: it found no free slot. (Count: slots of dead processes)
	SlotsFull DoubtKind = "slots_full"
	// FigureImpossible: a counter wrapped, or exceeds what the chip has.
	FigureImpossible DoubtKind = "figure_impossible"
	// ReportLate: it is older than the account it reports to. (Detail: since when, RFC 3339)
	ReportLate DoubtKind = "report_late"
	// ReportOverLimit: it has more buffers than are kept account of.
	ReportOverLimit DoubtKind = "report_over_limit"
	// ReportRejected: some of its reports could not be understood. (Count)
	ReportRejected DoubtKind = "report_rejected"
	// NoticedLate: it was there before anybody watched its allocator.
	NoticedLate DoubtKind = "noticed_late"
	// RequestUnknown: how much some of its buffers asked for is not known; they
	// count as what they take. (Count: blocks)
	RequestUnknown DoubtKind = "request_unknown"
	// PerCoreL1: its allocator keeps a list of L1 for each core (HYBRID), and
	// copies of some blocks in several: of which not all are known, they cannot be
	// added up. Its other pools are as they are.
	PerCoreL1 DoubtKind = "per_core"
	// EventsLost: events of its allocator were lost. (Count)
	EventsLost DoubtKind = "events_lost"
	// TooFast: it allocates so often that it is not watched any more. (Count: per second)
	TooFast DoubtKind = "too_fast"
	// ChipUnknown: which chips its allocator stands for is not known.
	ChipUnknown DoubtKind = "chip_unknown"
	// SourcesDisagree: another source says something else. (Source, Detail: what)
	SourcesDisagree DoubtKind = "sources_disagree"
	// NotBelieved: it spoke for a device that it does not have open, or of
	// more than the chip has. (Devices)
	NotBelieved DoubtKind = "not_believed"
	// OpenUnproven: whether it has the device open that it spoke for cannot be read.
	OpenUnproven DoubtKind = "open_unproven"
	// Unopened: it spoke for a device that it does not have open, and the
	// administrator lets it (alloc.unopened).
	Unopened DoubtKind = "unopened"
	// NumberUnknown: it spoke of a device number that is none of this host's. (Count: the number)
	NumberUnknown DoubtKind = "number_unknown"
)

// Doubts about a process of which nothing is known: it is in no figure.
// All have a PID.
const (
	// ProcessDenied: it is another user's. (UID)
	ProcessDenied DoubtKind = "process_denied"
	// ProcessUnreadable: it cannot be read. (Detail)
	ProcessUnreadable DoubtKind = "process_unreadable"
	// RegionUnreachable: it accounts in a file that cannot be reached from here.
	RegionUnreachable DoubtKind = "region_unreachable"
	// NotTTMetal: it maps neither libtt_metal.so nor a device, without which no
	// program reaches a chip's memory: it holds nothing and is missing nowhere.
	NotTTMetal DoubtKind = "not_tt_metal"
	// LibraryUnseen: it drives a device without libtt_metal.so. It is a tool, or
	// tt-metal is linked into it, and what it holds is not known.
	LibraryUnseen DoubtKind = "library_unseen"
	// OldRelease: its release keeps no statistics. (Release)
	OldRelease DoubtKind = "old_release"
	// TrackingDisabled: it was started with statistics switched off.
	TrackingDisabled DoubtKind = "tracking_disabled"
	// ShutOut: a region that belongs to another user prevents it from
	// accounting. (Region, UID: the region's owner)
	ShutOut DoubtKind = "shut_out"
	// LayoutMismatch: a region has a layout that its release cannot use. (Region, Version)
	LayoutMismatch DoubtKind = "layout_mismatch"
	// NotAttached: it is a tt-metal program and accounts nowhere.
	NotAttached DoubtKind = "not_attached"
	// OtherChipsOnly: it accounts, and for no chip of this device.
	OtherChipsOnly DoubtKind = "other_chips_only"
	// AllocatorUnknown: its release keeps its blocks in a way that is not known,
	// so that they cannot be watched.
	AllocatorUnknown DoubtKind = "allocator_unknown"
	// TooManyBlocks: it has more live blocks than are kept. (Count: how many are)
	TooManyBlocks DoubtKind = "too_many_blocks"
	// LibraryUnwatched: its library cannot be watched. (Detail)
	LibraryUnwatched DoubtKind = "library_unwatched"
	// NothingKnown: no source knows anything of it.
	NothingKnown DoubtKind = "nothing_known"
)

// Doubts about a chip or a device as a whole.
const (
	// SlotUnseen: the process of a slot cannot be seen: it is dead, or
	// outside this pid namespace. (SlotPID, Name, Chip)
	SlotUnseen DoubtKind = "slot_unseen"
	// SlotUnproven: it cannot be read whether a process is the one of a slot.
	// (PID, SlotPID, Chip)
	SlotUnproven DoubtKind = "slot_unproven"
	// SlotUndecided: there was no time to find the process of a slot. (SlotPID, Chip)
	SlotUndecided DoubtKind = "slot_undecided"
	// SlotsChanging: slots changed while they were read. (Chip)
	SlotsChanging DoubtKind = "slots_changing"
	// SlotsOverflowed: more processes account than there are slots. (Chip)
	SlotsOverflowed DoubtKind = "slots_overflowed"
	// RegionDenied: only its owner and root may read it. (Region, UID, Chip)
	RegionDenied DoubtKind = "region_denied"
	// RegionUnreadable: it could not be read. (Region, Detail, Chip)
	RegionUnreadable DoubtKind = "region_unreadable"
	// LayoutUnknown: it has a layout that this ttmon does not know. (Region, Version, Chip)
	LayoutUnknown DoubtKind = "layout_unknown"
	// RegionMisnamed: it says that it is of another chip. (Region, Chip: what it says)
	RegionMisnamed DoubtKind = "region_misnamed"
	// UsersHidden: descriptors are open whose processes cannot be seen from here. (Count)
	UsersHidden DoubtKind = "users_hidden"
	// UsersUnknown: who has the device open could not be found out. (Detail)
	UsersUnknown DoubtKind = "users_unknown"
	// ChipAmbiguous: memory is accounted for a chip that is one of several. (Chip, Devices, PIDs: who holds it)
	ChipAmbiguous DoubtKind = "chip_ambiguous"
	// ChipInferred: which chip it is was concluded, not read. (Chip, Basis)
	ChipInferred DoubtKind = "chip_inferred"
	// Unaccounted: the device is in use, and no process accounts for the chip.
	Unaccounted DoubtKind = "nobody_accounts"
	// ShmUnreadable: the directory of the accounting files could not be read. (Detail)
	ShmUnreadable DoubtKind = "shm_unreadable"
)

// What is known about how a process has a device open. They change no figure.
const (
	// InheritedFromExited: from a process that has exited. (PID)
	InheritedFromExited DoubtKind = "inherited_from_exited"
	// InheritedFromSeveral: from one of several that do not hold it any more. (Count)
	InheritedFromSeveral DoubtKind = "inherited_from_several"
	// InheritedFromUnknown: from an opener that is not known.
	InheritedFromUnknown DoubtKind = "inherited_from_unknown"
	// HandedOn: by a process that does not hold it any more. (PID)
	HandedOn DoubtKind = "handed_on"
	// MappedOnly: it has closed its descriptors and still maps the device.
	MappedOnly DoubtKind = "mapped_only"
	// NamespaceHidden: the opener is in a pid namespace that cannot be seen from here.
	NamespaceHidden DoubtKind = "namespace_hidden"
	// NumberForeign: this driver lists numbers of the opener's pid namespace, and no visible process fits.
	NumberForeign DoubtKind = "number_foreign"
	// HolderUnseen: the process that holds it cannot be read.
	HolderUnseen DoubtKind = "holder_unseen"
	// OpenerExited: a process opened the device and has exited; no process was found that holds it. (PID)
	OpenerExited DoubtKind = "opener_exited"
	// OpenerHandedOn: a process opened the device and does not hold it any
	// more; no process was found that does. (PID)
	OpenerHandedOn DoubtKind = "opener_handed_on"
	// ProcessesHidden: hidepid hides the processes of other users.
	ProcessesHidden DoubtKind = "processes_hidden"
	// ProcessesDenied: processes may not be looked into. (Count; UID: who asked)
	ProcessesDenied DoubtKind = "processes_denied"
	// ProcessesGuarded: they may not although root's capability for it is
	// there: a security module, or another user namespace. (Count)
	ProcessesGuarded DoubtKind = "processes_guarded"
	// ProcessesSkipped: there was no time to look into all. (Count)
	ProcessesSkipped DoubtKind = "processes_skipped"
)

// Why a region with bytes of the dead cannot be removed.
const (
	// RegionInUse: live processes account in it. (PIDs)
	RegionInUse DoubtKind = "region_in_use"
	// RegionNameless: its name is removed already.
	RegionNameless DoubtKind = "region_nameless"
	// OwnersUnseen: not all of its processes can be seen from here.
	OwnersUnseen DoubtKind = "owners_unseen"
)

// Equal reports whether two doubts are the same.
func (d Doubt) Equal(e Doubt) bool {
	a, b := d, e
	a.PIDs, a.Devices, b.PIDs, b.Devices = nil, nil, nil, nil
	return same(a, b) && slices.Equal(d.PIDs, e.PIDs) && slices.Equal(d.Devices, e.Devices)
}

func same(a, b Doubt) bool {
	return a.Kind == b.Kind && a.PID == b.PID && a.SlotPID == b.SlotPID && a.UID == b.UID && a.Chip == b.Chip &&
		a.Region == b.Region && a.Release == b.Release && a.Name == b.Name && a.Version == b.Version &&
		a.Count == b.Count && a.Source == b.Source && a.Basis == b.Basis && a.Detail == b.Detail
}

// AddDoubts appends doubts that are not there yet.
func AddDoubts(to []Doubt, more ...Doubt) []Doubt {
	for _, d := range more {
		if !slices.ContainsFunc(to, d.Equal) {
			to = append(to, d)
		}
	}
	return to
}

// WorstBound is the worst that a list of doubts does to a figure.
func WorstBound(list []Doubt) (b Bound) {
	for i := range list {
		b = max(b, list[i].Kind.Bound())
	}
	return b
}

// Source is where a memory figure comes from.
type Source string

// The sources, from the best to the worst. A process's figures on a device
// come from one of them; two are never added.
const (
	FromTrack  Source = "track"  // libttmon, in the process itself
	FromUprobe Source = "uprobe" // its allocator, watched through the kernel
	FromSocket Source = "socket" // it reports to ttmond
	FromFDInfo Source = "fdinfo" // the driver, per descriptor
	FromDriver Source = "driver" // the driver
	FromShm    Source = "shm"    // tt-metal's own statistics
)

// Basis is what the place of a chip was concluded from.
type Basis string

// The bases.
const (
	BySysfs      Basis = "sysfs"      // serial number and ASIC id
	ByDescriptor Basis = "descriptor" // UMD's description of the host
	ByOrder      Basis = "order"      // the order of the devices its process has open
	BySibling    Basis = "sibling"    // the other chip of the board is known
	ByTray       Basis = "tray"       // its tray is known
)
