package uprobe

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/source/uprobe/pages"
)

// Obstacle is why this machine or process cannot watch.
type Obstacle string

// Obstacles.
const (
	NoPrivilege   Obstacle = "privilege"   // neither root nor CAP_BPF and CAP_PERFMON
	NoBPF         Obstacle = "bpf"         // the kernel has no BPF, or forbids the system call
	NoBTF         Obstacle = "btf"         // the kernel does not describe its types
	NoUprobeMulti Obstacle = "uprobemulti" // the kernel is older than 6.6
	Lockdown      Obstacle = "lockdown"    // the kernel is locked down: confidentiality
	Memlock       Obstacle = "memlock"     // no memory may be locked
	Paranoid      Obstacle = "paranoid"    // kernel.perf_event_paranoid denies us the records of mappings
	OtherObstacle Obstacle = "other"
)

// ObstacleError is why nothing can be watched.
type ObstacleError struct {
	Obstacle Obstacle
	Err      error // what the kernel said
}

func (e *ObstacleError) Error() string {
	return fmt.Sprintf("watching allocators through the kernel (%s): %v", e.Obstacle, e.Err)
}

func (e *ObstacleError) Unwrap() error { return e.Err }

// kernel is the BPF program, loaded, with its maps.
type kernel struct {
	watchObjects
	reader    *ring       // nil until there is something to watch
	pages     *ring       // the same for what chips report
	lifecycle []link.Link // exec, exit, fork
	// How often each ring was emptied.
	turns, pageTurns uint32
}

// nextTurn signals the BPF program that the ring was emptied: users may fill their
// part of it again.
func (k *kernel) nextTurn() {
	k.turns++
	_ = k.Turn.Put(uint32(0), k.turns)
}

// nextPageTurn is the same for the ring of pages.
func (k *kernel) nextPageTurn() {
	k.pageTurns++
	_ = k.Turn.Put(uint32(1), k.pageTurns)
}

// wakeBytes of waiting events wake the reader at once. Fewer are read at its next
// poll.
const wakeBytes = 64 << 10

// recordBytes is what an event takes in the ring.
const recordBytes = uint32(eventBytes) + 8

// pageBytes is what a page takes in its ring, with the pointer to its name.
const pageBytes = pages.PageBytes + 8

// load loads the program. ringBytes is a power of two.
func load(ringBytes, processes uint32) (*kernel, error) {
	k := &kernel{}
	err := k.load(nil, func(maps map[string]*ebpf.MapSpec) {
		maps[watchMapEvents].MaxEntries = ringBytes
		maps[watchMapProcesses].MaxEntries = processes
	})
	if err != nil {
		return nil, err
	}
	if err := k.follow(); err != nil {
		k.Close()
		return nil, thisMachine(nil).obstacle(err)
	}
	return k, nil
}

// load loads the program, over the maps that it has already. A quarter of the ring is
// root's alone, and half of it one user's at most; of the table of processes root
// has an eighth, and one user a quarter. What is attached jumps to it from then on.
func (k *kernel) load(over map[string]*ebpf.Map, size func(map[string]*ebpf.MapSpec)) error {
	namespace, err := pidNamespace()
	if err != nil {
		return err
	}
	// From 5.11 on BPF memory is no longer locked; this fails without
	// CAP_SYS_RESOURCE, and matters only if loading fails too.
	memlock := rlimit.RemoveMemlock()
	spec, err := loadWatch()
	if err != nil {
		return err
	}
	size(spec.Maps)
	ringBytes, processes, workBytes := spec.Maps[watchMapEvents].MaxEntries, spec.Maps[watchMapProcesses].MaxEntries, spec.Maps[watchMapWork].MaxEntries
	if err := errors.Join(
		spec.Variables[watchVarNamespace].Set(namespace),
		spec.Variables[watchVarWakeBytes].Set(uint32(min(wakeBytes, ringBytes/4))),
		spec.Variables[watchVarUserProcesses].Set(processes/4),
		spec.Variables[watchVarAllProcesses].Set(processes-processes/8),
		spec.Variables[watchVarUserEvents].Set(ringBytes/2/recordBytes),
		spec.Variables[watchVarAllBytes].Set(ringBytes/4*3),
		spec.Variables[watchVarUserPages].Set(workBytes/2/pageBytes),
		spec.Variables[watchVarWakeWorkBytes].Set(workBytes/8),
		spec.Variables[watchVarAllWorkBytes].Set(workBytes/4*3),
	); err != nil {
		return err
	}
	if err := spec.LoadAndAssign(&k.watchObjects, &ebpf.CollectionOptions{MapReplacements: over}); err != nil {
		return thisMachine(memlock).obstacle(err)
	}
	for table, programs := range map[*ebpf.Map]map[uint32]*ebpf.Program{
		k.Jumps: {uint32(watchJumpJUMP_HIT): k.OnHit, uint32(watchJumpJUMP_WORKED): k.OnWorked, uint32(watchJumpJUMP_HOSTED): k.OnHosted},
		k.Lives: {uint32(watchTurnOfLifeLIFE_EXEC): k.OnExec, uint32(watchTurnOfLifeLIFE_GONE): k.OnGone, uint32(watchTurnOfLifeLIFE_FORKED): k.OnForked},
	} {
		for at, program := range programs {
			if err := table.Put(at, program); err != nil {
				k.Close()
				return thisMachine(nil).obstacle(err)
			}
		}
	}
	return nil
}

// follow attaches to exec, exit and fork of processes.
func (k *kernel) follow() error {
	for name, program := range map[string]*ebpf.Program{
		"sched_process_exec": k.Exec, "sched_process_exit": k.Gone, "sched_process_fork": k.Forked,
	} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: program})
		if err != nil {
			return fmt.Errorf("attaching to %s: %w", name, err)
		}
		k.lifecycle = append(k.lifecycle, l)
	}
	return nil
}

// Close unloads everything.
func (k *kernel) Close() error {
	for _, l := range k.lifecycle {
		l.Close()
	}
	if k.reader != nil {
		k.reader.Close()
	}
	if k.pages != nil {
		k.pages.Close()
	}
	return k.watchObjects.Close()
}

// limits are what a machine forbids, or lacks.
type limits struct {
	privileged, btf bool
	lockdown        string // of /sys/kernel/security/lockdown
	paranoid        string // of kernel.perf_event_paranoid
	memlock         error  // of raising the limit of locked memory
}

func thisMachine(memlock error) limits {
	_, btf := os.Stat("/sys/kernel/btf/vmlinux")
	lockdown, _ := os.ReadFile("/sys/kernel/security/lockdown")
	paranoid, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	return limits{
		privileged: privileged(), btf: btf == nil, lockdown: string(lockdown), memlock: memlock,
		paranoid: strings.TrimSpace(string(paranoid)),
	}
}

// obstacle finds the reason for an error at loading. The kernel returns EPERM for
// several of them, so what the machine forbids decides.
func (m limits) obstacle(err error) error {
	o := OtherObstacle
	_, rejected := errors.AsType[*ebpf.VerifierError](err) // with EACCES too
	denied := !rejected && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES))
	switch {
	case errors.Is(err, unix.ENOSYS):
		o = NoBPF
	case !m.privileged:
		o = NoPrivilege
	case strings.Contains(m.lockdown, "[confidentiality]"):
		o = Lockdown
	case denied && m.memlock != nil:
		o = Memlock
	case denied:
		o = NoBPF
	case !m.btf:
		o = NoBTF
	case errors.Is(err, ebpf.ErrNotSupported):
		o = NoUprobeMulti
	}
	return &ObstacleError{o, err}
}

// slow finds the reason why the records of mappings are unavailable. Above 2 some
// distributions allow them to CAP_SYS_ADMIN only.
func (m limits) slow(err error) error {
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return &ObstacleError{Paranoid, fmt.Errorf("it is %s: %w", m.paranoid, err)}
	}
	return &ObstacleError{OtherObstacle, err}
}

// privileged reports whether the process has the capabilities that it needs.
func privileged() bool {
	const bpf, perfmon, admin = 39, 38, 21
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	has := func(c int) bool { return data[c/32].Effective&(1<<(c%32)) != 0 }
	return has(admin) || has(bpf) && has(perfmon)
}

// pidNamespace is the inode of the pid namespace of this process.
func pidNamespace() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("reading /proc/self/ns/pid: %w", err)
	}
	return uint32(st.Ino), nil
}
