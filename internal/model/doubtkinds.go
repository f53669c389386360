package model

// DoubtSubject is what a kind of doubt is about.
type DoubtSubject uint8

// The subjects, in the order of the documentation.
const (
	DoubtsFigures DoubtSubject = iota // the figures of one process
	DoubtsProcess                     // a process of which nothing is known
	DoubtsChip                        // a chip or a device as a whole
	DoubtsOpeners                     // how a device is open, and who could be seen
	DoubtsRemoval                     // whether a region can be removed
)

// DoubtRow is what is said about a kind of doubt wherever it occurs. Its sentence, which
// has the doubt's data in it, is in words.
type DoubtRow struct {
	Kind    DoubtKind
	Subject DoubtSubject
	Bound   Bound // what it leaves of a figure that would be exact without it
	// Quiet: it holds for every program of a release, so that its mark says enough and
	// one sentence for the host is plenty.
	Quiet bool
	// Shown although it changes no figure: who uses a device is not wholly known.
	Shown bool
	When  string // in the documentation
}

// DoubtKinds has a row for each kind, in the order of the documentation.
var DoubtKinds = []DoubtRow{
	{Kind: OtherThreads, Bound: Unsure, Quiet: true, When: "its release counts one thread only, and neither what others allocate nor what they free; `ttmon run` and uprobes count all"},
	{Kind: GraphCapture, Bound: Unsure, Quiet: true, When: "its release counts tensors of a graph capture that do not exist, and stops counting after one begun before the device was opened"},
	{Kind: SlotAdopted, When: "it has the pid of a dead process, whose bytes were taken off"},
	{Kind: SlotMaybeAdopted, Bound: Unsure, When: "a process died on the chip before ttmon started: its bytes may be in the figure"},
	{Kind: OwnerGuessed, Bound: Unsure, When: "the entry is its own by pid, name and start time; its mappings cannot be read"},
	{Kind: SlotShared, When: "several processes account in one entry: there is only their sum"},
	{Kind: RecordsErased, Bound: AtLeast, When: "another process erased what it had recorded"},
	{Kind: SlotsFull, Bound: AtLeast, When: "it found no free entry"},
	{Kind: FigureImpossible, Bound: AtLeast, When: "a counter wrapped, or is more than the chip has"},
	{Kind: ReportLate, Bound: AtLeast, When: "it is older than the `ttmond` it reports to"},
	{Kind: ReportOverLimit, Bound: AtLeast, When: "it has more buffers, or bytes, than `ttmond` keeps account of"},
	{Kind: ReportRejected, Bound: Unsure, When: "some of its reports could not be parsed"},
	{Kind: RequestUnknown, Bound: Unsure, When: "how much some of its buffers asked for is not known; they count as the blocks that they take"},
	{Kind: PerCoreL1, When: "its allocator gives out L1 core by core (HYBRID), and not all of that was seen: its L1 has no figure, its other pools have theirs"},
	{Kind: NoticedLate, Bound: AtLeast, When: "it started before its allocator was watched"},
	{Kind: EventsLost, Bound: Unsure, When: "events of its allocator were lost"},
	{Kind: TooFast, Bound: Unsure, When: "it allocates so often that it is no longer watched"},
	{Kind: ChipUnknown, Bound: AtLeast, When: "the chips of its allocator are unknown"},
	{Kind: SourcesDisagree, Shown: true, When: "another source disagrees; the better one is shown"},
	{Kind: NotBelieved, Bound: AtLeast, When: "it reported for a device that it does not have open, or more than there is"},
	{Kind: OpenUnproven, Bound: Unsure, When: "whether it has the device open for which it reported cannot be read"},
	{Kind: Unopened, Bound: Unsure, When: "it reported for a device that it does not have open, and `alloc.unopened` lets it"},
	{Kind: NumberUnknown, Shown: true, When: "it reported for a device number that this host does not have"},
	{Kind: ProcessDenied, Subject: DoubtsProcess, Bound: AtLeast, When: "it is another user's"},
	{Kind: ProcessUnreadable, Subject: DoubtsProcess, Bound: AtLeast, When: "it cannot be read"},
	{Kind: RegionUnreachable, Subject: DoubtsProcess, Bound: AtLeast, When: "it accounts in a file that cannot be reached from here"},
	{Kind: NotTTMetal, Subject: DoubtsProcess, When: "it maps neither `libtt_metal.so` nor the device, so it cannot reach the chip's memory: it holds nothing, and is missing nowhere"},
	{Kind: LibraryUnseen, Subject: DoubtsProcess, Bound: AtLeast, When: "it maps the device and no `libtt_metal.so`: a tool such as Tenstorrent's tt-smi, or a program that tt-metal is linked into statically"},
	{Kind: OldRelease, Subject: DoubtsProcess, Bound: AtLeast, When: "its release keeps no statistics"},
	{Kind: TrackingDisabled, Subject: DoubtsProcess, Bound: AtLeast, When: "it was started with statistics switched off"},
	{Kind: ShutOut, Subject: DoubtsProcess, Bound: AtLeast, When: "another user's region prevents it from accounting"},
	{Kind: LayoutMismatch, Subject: DoubtsProcess, Bound: AtLeast, When: "a region has a layout that its release cannot use"},
	{Kind: NotAttached, Subject: DoubtsProcess, Bound: AtLeast, When: "it is a tt-metal program and accounts nowhere: no chip opened yet, all closed, or statistics switched off from inside"},
	{Kind: OtherChipsOnly, Subject: DoubtsProcess, Bound: AtLeast, When: "it accounts, and for no chip of this device"},
	{Kind: AllocatorUnknown, Subject: DoubtsProcess, Bound: AtLeast, When: "its release keeps its blocks in an unknown way and cannot be watched"},
	{Kind: TooManyBlocks, Subject: DoubtsProcess, Bound: AtLeast, When: "it has more live blocks than are kept account of (a million)"},
	{Kind: LibraryUnwatched, Subject: DoubtsProcess, Bound: AtLeast, When: "its `libtt_metal.so` cannot be watched: replaced, not readable, or without the functions that are"},
	{Kind: NothingKnown, Subject: DoubtsProcess, Bound: AtLeast, When: "no source knows anything of it"},
	{Kind: SlotUnseen, Subject: DoubtsChip, Bound: AtLeast, When: "the process of an entry cannot be seen: it is dead, or in another container"},
	{Kind: SlotUnproven, Subject: DoubtsChip, Bound: AtLeast, When: "it cannot be read whether a process is the one of an entry"},
	{Kind: SlotUndecided, Subject: DoubtsChip, Bound: AtLeast, When: "there was no time to find the process of an entry"},
	{Kind: SlotsChanging, Subject: DoubtsChip, Bound: Unsure, When: "entries changed while they were read"},
	{Kind: SlotsOverflowed, Subject: DoubtsChip, Bound: AtLeast, When: "more processes account than there are entries"},
	{Kind: RegionDenied, Subject: DoubtsChip, Bound: AtLeast, When: "only its owner and root may read the region"},
	{Kind: RegionUnreadable, Subject: DoubtsChip, Bound: AtLeast, When: "the region could not be read, or is not finished"},
	{Kind: LayoutUnknown, Subject: DoubtsChip, Bound: AtLeast, When: "the region has a layout that this `ttmon` does not know"},
	{Kind: RegionMisnamed, Subject: DoubtsChip, Bound: AtLeast, When: "the region says that it is of another chip"},
	{Kind: UsersHidden, Subject: DoubtsChip, Bound: AtLeast, Shown: true, When: "the device is open in processes that cannot be seen from here"},
	{Kind: UsersUnknown, Subject: DoubtsChip, Bound: AtLeast, Shown: true, When: "who has the device open could not be found out"},
	{Kind: ChipAmbiguous, Subject: DoubtsChip, Bound: AtLeast, When: "memory is accounted for a chip that is one of several devices'"},
	{Kind: ChipInferred, Subject: DoubtsChip, When: "which chip it is was concluded, not read; see below"},
	{Kind: Unaccounted, Subject: DoubtsChip, Bound: AtLeast, When: "the device is in use, and no process accounts for the chip"},
	{Kind: ShmUnreadable, Subject: DoubtsChip, Bound: AtLeast, When: "`/dev/shm` could not be read"},
	{Kind: InheritedFromExited, Subject: DoubtsOpeners, When: "from a process that has exited"},
	{Kind: InheritedFromSeveral, Subject: DoubtsOpeners, When: "from one of several that do not hold it any more"},
	{Kind: InheritedFromUnknown, Subject: DoubtsOpeners, When: "from an opener that is not known"},
	{Kind: HandedOn, Subject: DoubtsOpeners, When: "by a process that does not hold it any more"},
	{Kind: MappedOnly, Subject: DoubtsOpeners, When: "it has closed its descriptors and still maps the device"},
	{Kind: NamespaceHidden, Subject: DoubtsOpeners, When: "the opener is in a pid namespace that cannot be seen from here"},
	{Kind: NumberForeign, Subject: DoubtsOpeners, When: "this driver lists numbers of the opener's own namespace, and no visible process fits"},
	{Kind: HolderUnseen, Subject: DoubtsOpeners, When: "the process that holds it cannot be read"},
	{Kind: OpenerExited, Subject: DoubtsOpeners, Shown: true, When: "its opener has exited, and no process was found that holds it"},
	{Kind: OpenerHandedOn, Subject: DoubtsOpeners, Shown: true, When: "its opener no longer holds it, and no process was found that does"},
	{Kind: ProcessesHidden, Subject: DoubtsOpeners, Shown: true, When: "hidepid hides the processes of other users"},
	{Kind: ProcessesDenied, Subject: DoubtsOpeners, Shown: true, When: "processes may not be looked into"},
	{Kind: ProcessesGuarded, Subject: DoubtsOpeners, Shown: true, When: "processes may not be looked into although the capability is there: a security module, or another user namespace"},
	{Kind: ProcessesSkipped, Subject: DoubtsOpeners, Shown: true, When: "there was no time to look into all"},
	{Kind: RegionInUse, Subject: DoubtsRemoval, When: "live processes account in it"},
	{Kind: RegionNameless, Subject: DoubtsRemoval, When: "its name is removed already"},
	{Kind: OwnersUnseen, Subject: DoubtsRemoval, When: "not all of its processes can be seen from here"},
}

var doubtRows = func() map[DoubtKind]*DoubtRow {
	rows := make(map[DoubtKind]*DoubtRow, len(DoubtKinds))
	for i := range DoubtKinds {
		rows[DoubtKinds[i].Kind] = &DoubtKinds[i]
	}
	return rows
}()

// Row is what is said about a kind; of one that is not known, of a newer ttmond, nothing
// but its name.
func (k DoubtKind) Row() *DoubtRow {
	if r := doubtRows[k]; r != nil {
		return r
	}
	return &DoubtRow{Kind: k}
}

// Bound is what the doubt leaves of a figure that would be exact without it.
func (k DoubtKind) Bound() Bound { return k.Row().Bound }
