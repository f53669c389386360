package runs

// Line is a line of a program that allocates device memory, with its tag and pool.
type Line struct {
	Pool     string `json:"pool"`
	Tag      string `json:"tag,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Function string `json:"function,omitempty"`
}

// LineUse is what a line of a run held, over all its chips.
type LineUse struct {
	Peak   uint64 // the most
	AtPeak uint64 // when the run held the most of the pool
	Held   uint64 // in the end
	Allocs uint64 // blocks that it allocated
}

// Lines are the lines of a run, as its recording has them.
type Lines struct {
	Used  map[Line]LineUse
	Peaks map[string]uint64            // the most that all lines together held, by pool
	Chips map[uint64]map[string]uint64 // the same, on each chip
	Lost  uint64                       // events that are missing
}
