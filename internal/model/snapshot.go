package model

import "time"

// Snapshot is everything known about a host at one moment. It is immutable
// once published: views may keep it and read it without locks. The tag see says who may
// see what a field holds, unless a field inside says something else (Process has the
// words).
type Snapshot struct {
	Time      time.Time
	Source    Origin
	Simulated bool      // the host is ttmon-sim's; every view must say so
	Host      Host      `see:"all"`
	Devices   []Device  `see:"all"` // by kernel index
	Others    int       // devices of the host that the user did not select
	Processes []Process `see:"fields"` // by pid, then start time
	// Unmatched are chips whose memory is accounted on this host although
	// none of its devices has them: mock and simulator runs, mostly.
	Unmatched []Chip `see:"all"`
	// StaleSlots are the bytes that dead processes left behind in accounting
	// regions. They are in no chip's used bytes.
	StaleSlots []StaleSlot `see:"all"`
	Alerts     []Alert     `see:"all"` // that fire
	// Log has the newest lines of the kernel's log about driver and chips, the
	// oldest first. It is short: who follows must see every snapshot.
	Log []LogLine `see:"all"`
	// Exits are the processes that have left their devices in the last minute, the
	// oldest first. Like Log it is short.
	Exits []Exit `see:"proc"`
	// Assessed tells that Conditions holds what assess found, which may be
	// nothing; without it a view has to ask assess.
	Assessed   bool
	Conditions []Condition `see:"all"` // worst first
}

// Origin is where a snapshot was made.
type Origin string

// Where snapshots come from.
const (
	Direct Origin = "direct" // this process read the host itself
	Daemon Origin = "daemon" // ttmond did
)

// Host describes the machine.
type Host struct {
	Name          string
	Kernel        string
	DriverLoaded  bool
	DriverVersion Reading[string]
	// Unbound are the PCI addresses of Tenstorrent functions that no driver
	// has claimed: a failed probe, or the module is not loaded.
	Unbound []string
	// HiddenFDs counts open descriptors of devices, of which ones cannot be
	// told, whose processes are not visible from here: a driver before 2.5
	// only says how many there are.
	HiddenFDs int
	// Broker is the directory of Tenstorrent's device broker, which starts jobs
	// and resets devices by itself; empty where there is none.
	Broker string

	CPU                     Reading[float64] // percent of all cores between two samples
	Load                    Reading[float64] // average of the last minute
	MemoryUsed, MemoryTotal Reading[uint64]  // bytes; used: what could not be given to others
}

// Device returns the device with the given kernel index, or nil.
func (s *Snapshot) Device(index int) *Device {
	for i := range s.Devices {
		if s.Devices[i].Index == index {
			return &s.Devices[i]
		}
	}
	return nil
}

// Chip returns the chip with a unique id and the device that it is on; nil: no device
// of this host has it.
func (s *Snapshot) Chip(id uint64) (*Device, *Chip) {
	for i := range s.Devices {
		for k := range s.Devices[i].Chips {
			if x, ok := s.Devices[i].Chips[k].ID.Get(); ok && x == id {
				return &s.Devices[i], &s.Devices[i].Chips[k]
			}
		}
	}
	return nil, nil
}

// DeviceOf returns the kernel index of the device that a chip is on, or NoDevice.
func (s *Snapshot) DeviceOf(chip uint64) int {
	if d, _ := s.Chip(chip); d != nil {
		return d.Index
	}
	return NoDevice
}

// StaleSlot is what a dead process left in an accounting region.
type StaleSlot struct {
	Region  string // path of the region, as seen from this host
	ChipID  uint64
	Device  int    // kernel index, or NoDevice
	PID     int    // as the dead writer saw it: its own namespace's number
	Name    string `see:"proc"`
	Bytes   PoolBytes
	Updated time.Time // when the dead process last wrote; zero if unknown
	Mapped  bool      // a live process still maps the region: not removable
}

// What stands for a kernel index.
const (
	NoDevice   = -1 // there is none
	AllDevices = -2 // all together
)
