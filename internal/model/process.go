package model

import "time"

// Process is a process that uses a device. Its identity is (PID, StartTicks):
// pids are reused.
//
// The tag see says to whom a daemon shows a field: "all" to every client, "proc" to
// those to whom /proc shows it (with hidepid, its user), "user" likewise, but with
// hidepid=1 to all, "owner" to root and its user only, since it was read by root's rights.
// "past" is as "proc" as long as the process runs; later not for clients without a name:
// arguments may have secrets in them, and who is not a user of the host never could
// have read them. "fields": each field inside says it. TestEveryAnswerIsDecided of
// internal/node/api checks it in every answer.
type Process struct {
	PID        int              `see:"all"`
	StartTicks uint64           `see:"all"` // field 22 of /proc/<pid>/stat: clock ticks after boot
	StartTime  time.Time        `see:"all"` // zero if unknown
	PPID       int              `see:"proc"`
	State      ProcessState     `see:"all"`
	Condition  ProcessCondition `see:"proc"`

	UID     Reading[int]     `see:"user"`
	User    Reading[string]  `see:"user"` // name, or the number where no name is known
	Name    Reading[string]  `see:"proc"` // comm; raw bytes, escaped by the views
	Cmdline Reading[string]  `see:"past"` // arguments joined by blanks; raw, escaped by the views
	CPU     Reading[float64] `see:"proc"` // percent of one core between two samples
	RSS     Reading[uint64]  `see:"proc"`
	Threads Reading[int]     `see:"proc"`

	Container   Container `see:"proc"`
	SlurmJob    string    `see:"proc"` // job id; empty: in none
	SlurmStep   string    `see:"proc"` // its step: a number, batch, extern, interactive; empty where that is not known
	SlurmFrom   JobSource `see:"proc"` // who says so
	SystemdUnit string    `see:"proc"`
	Reach       Reach     `see:"fields"`

	Release Reading[string] `see:"proc"` // tt-metal/ttnn release it runs
	Type    Reading[string] `see:"proc"` // what it uses devices with: TypeTTNN and the like
	Doubts  []Doubt         `see:"all"`  // about all of its figures
	Devices []DeviceUse     `see:"all"`  // by device index
	Work    ProcessWork     `see:"all"`
	// Failures is nil where its requests for memory are not watched.
	Failures *Failures `see:"proc"`
}

// Reach is how to reach the user who runs a process. What is empty is not known, or may
// not be read. All of it is raw: users choose it.
type Reach struct {
	FullName string `see:"proc"`  // of the user, as the host's /etc/passwd has it
	JobName  string `see:"owner"` // of its Slurm job
	TTY      string `see:"proc"`  // pts/3; empty: it has no terminal
	SSH      string `see:"owner"` // the address from which its session came, as its environment has it
	Dir      string `see:"owner"` // its working directory
}

// ProcessID is the identity of a process: pids are reused.
type ProcessID struct {
	PID        int
	StartTicks uint64
}

// ID is the process's identity.
func (p *Process) ID() ProcessID { return ProcessID{p.PID, p.StartTicks} }

// ProcessState says what is behind a pid in the driver's list.
type ProcessState string

// Process states.
const (
	Running ProcessState = "running"
	Exited  ProcessState = "exited" // opened the device, has exited; another process inherited the descriptor
	Hidden  ProcessState = "hidden" // outside our pid namespace; the pid is 0
)

// ProcessCondition is how a process that is still there is doing. The empty
// one is the usual one.
type ProcessCondition string

// Conditions worth saying.
const (
	Zombie  ProcessCondition = "zombie"  // it has exited, and its parent has not waited for it yet
	Stopped ProcessCondition = "stopped" // by a signal or a debugger
	Stuck   ProcessCondition = "stuck"   // it may be: the device has that condition
	// Compiling: compilers that it has started run, as before a kernel runs for the first
	// time. It is neither idle nor stuck.
	Compiling ProcessCondition = "compiling"
)

// Container is where a process runs, from its cgroup. The zero Container is the host.
type Container struct {
	Runtime   string // docker, containerd, cri-o, podman, lxc, systemd-nspawn; empty if only the id can be told
	ID        string // full id as in the cgroup path
	Pod       string // Kubernetes pod uid
	PodName   string // Kubernetes pod name, where it can be told
	Namespace string // Kubernetes namespace, where it can be told
}

// PodClaim is a device that Kubernetes has given to a container of a pod.
type PodClaim struct {
	Namespace, Pod, Container string
	Resource                  string   // of a device plugin, or the driver of a claim
	Names                     []string // what the plugin or driver calls the device
}

// JobSource is how it is known to which Slurm job a process belongs.
type JobSource string

// The sources, best first.
const (
	JobOfCgroup  JobSource = "cgroup"      // Slurm put it there, and its user cannot change that
	JobOfEnviron JobSource = "environment" // what it was started with says so: Slurm's word, unless its user changed it
)

// DeviceUse is one process's use of one device.
type DeviceUse struct {
	Device    int // kernel index, or NoDevice for a chip that is behind none of this host's devices
	OpenFDs   Reading[int]
	Inherited bool // holds a descriptor it did not open itself
	Tracking  Tracking
	Memory    PoolBytes // summed over Chips
	Source    Source    // empty if nothing is known
	Doubts    []Doubt
	Chips     []ChipUse
}

// ChipUse is one process's memory on one chip.
type ChipUse struct {
	ChipID uint64
	Memory PoolBytes
}

// OOMKill is a process that the kernel killed because the host or a control group
// had no memory left, as the kernel's log has it.
type OOMKill struct {
	PID  int
	Time time.Time
}

// Exit is how a process left the devices it had open.
type Exit struct {
	ID    ProcessID
	Time  time.Time // when that was noticed
	Alive bool      // it has closed its devices and still runs
	// Status is the wait status of a process that has exited, as in wait(2). The
	// kernel tells it to few.
	Status Reading[int]
	// OutOfMemory: the kernel killed it because there was no memory left.
	OutOfMemory bool
	Failures    *Failures // nil: none is known
	Account     *Account  // nil: it kept no ledger that was read, or allocated nothing
}

// Account is what the ledger of a process that has exited says of its memory.
type Account struct {
	UID   int       // of the user whose ledger it is
	Name  string    // of the process
	Start time.Time // of the ledger
	Last  time.Time // when something was last known to happen
	Peaks []Peak
}

// Peak is the most that a process held of a pool in a place.
type Peak struct {
	Device int    // kernel index, NoDevice or AllDevices
	ChipID uint64 // 0: on all chips of the device together
	Pool   string // its name
	Bytes  Bytes
	At     time.Time
}

// Types of processes.
const (
	TypeTTNN  = "ttnn"     // the library of a ttnn package
	TypeMetal = "tt-metal" // a tt-metal of its own: a C++ program, or ttnn built from its sources
	TypeOther = "other"    // neither: a tool, or a program that tt-metal is linked into
)
