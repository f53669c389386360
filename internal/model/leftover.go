package model

// Leftover is an accounting region in which dead processes left something, or
// may have: into one that is Denied nobody here can look.
type Leftover struct {
	Region  string // path, as seen from this host
	ChipID  uint64
	Device  int // kernel index, or NoDevice
	Owner   int // uid: only it and root can read and remove the region
	Denied  bool
	Ghosts  []Ghost
	Blocked string // why it cannot be removed, as a sentence; empty if it can
	Removed bool
	Failure string // why removing it did not work
}
