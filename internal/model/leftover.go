package model

// Leftover is an accounting region in which dead processes left something, or
// may have: one that is Denied cannot be read here.
type Leftover struct {
	Region     string // path, as seen from this host
	ChipID     uint64
	Device     int // kernel index, or NoDevice
	Owner      int // uid: only it and root can read and remove the region
	Denied     bool
	StaleSlots []StaleSlot
	Blocked    *Doubt      // why it cannot be removed; nil if it can
	Unseen     []StaleSlot // may be of dead processes: their owners cannot be seen from here
	Removed    bool
	Failure    string // why removing it did not work
}
