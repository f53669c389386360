package model

// DoubtKinds lists all kinds there are, for code that must have something to
// say about each.
func DoubtKinds() []DoubtKind {
	return []DoubtKind{
		OtherThreads, GraphCapture, SlotAdopted, SlotMaybeAdopted, OwnerGuessed, SlotShared, RecordsErased,
		SlotsFull, FigureImpossible, ReportLate, ReportOverLimit, ReportRejected, NoticedLate, RequestUnknown, PerCoreL1, EventsLost, TooFast,
		ChipUnknown, SourcesDisagree, NotBelieved, OpenUnproven, NumberUnknown, ProcessDenied, ProcessUnreadable,
		RegionUnreachable, NotTTMetal, LibraryUnseen, OldRelease, TrackingDisabled, ShutOut, LayoutMismatch, NotAttached,
		OtherChipsOnly, AllocatorUnknown, TooManyBlocks, LibraryUnwatched, NothingKnown, SlotUnseen, SlotUnproven, SlotUndecided, SlotsChanging, SlotsOverflowed,
		RegionDenied, RegionUnreadable, LayoutUnknown, RegionMisnamed, UsersHidden, UsersUnknown, ChipAmbiguous,
		ChipInferred, Unaccounted, ShmUnreadable, InheritedFromExited, InheritedFromSeveral,
		InheritedFromUnknown, HandedOn, MappedOnly, NamespaceHidden, NumberForeign, HolderUnseen, OpenerExited,
		OpenerHandedOn, ProcessesHidden, ProcessesDenied, ProcessesGuarded, ProcessesSkipped, RegionInUse, RegionNameless,
		OwnersUnseen,
	}
}
