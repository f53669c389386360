package model

// Setup is how a host is prepared for boards: what the kernel and its files
// offer to the driver, to tt-metal and to ttmon, beside the boards themselves.
// ttmon doctor looks at it; snapshots do not carry it.
type Setup struct {
	Nodes     []Node     // of the devices, by index
	Functions []Function // Tenstorrent functions on the PCI bus, by bus id

	HugePages Reading[int] // pages of 1 GiB that are set aside
	HugeFree  Reading[int] // of those, the free ones
	HugeMount string       // where they can be mapped from; empty: nowhere

	Regions  Reading[int]    // accounting regions of tt-metal in /dev/shm
	ShmFree  Reading[uint64] // bytes left in /dev/shm
	ShmTotal Reading[uint64]

	Kernel     string // release
	BTF        bool   // the kernel describes its types, which uprobes need
	Lockdown   string // "none", "integrity", "confidentiality"; empty: no such thing
	Container  string // why this seems to be inside a container; empty: it does not
	HidePID    bool   // /proc hides other users' processes
	Parameters []Parameter

	Mount *HostMount // nil: the host's root is ours
}

// HostMount is how much of a host can be seen through a mount of its root
// (--root), as a container has it.
type HostMount struct {
	Dir      string
	Proc     bool          // the host's /proc is below it
	Shm      bool          // and its /dev/shm
	SamePIDs Reading[bool] // processes have the numbers here that they have there
	Lacking  []string      // capabilities that ttmon is without, of those it uses
}

// Node is a device node, as it looks from outside: it is never opened.
type Node struct {
	Index  int
	Path   string
	Mode   uint32 // permission bits
	UID    int
	Usable bool // the asking user may read and write it
}

// Function is a Tenstorrent function on the PCI bus.
type Function struct {
	BusID string
	IOMMU Reading[IOMMU]
	// Errors that the PCI core has counted since the host started.
	FatalErrors, NonfatalErrors Reading[uint64]
}

// IOMMU is what stands between a device and the host's memory.
type IOMMU string

// The kinds.
const (
	NoIOMMU     IOMMU = "none"        // the device uses physical addresses
	PassThrough IOMMU = "passthrough" // there is one, and it lets addresses through as they are
	Translated  IOMMU = "translated"  // addresses are translated: no huge pages are needed
)

// Parameter is a parameter of the driver's module.
type Parameter struct{ Name, Value string }
