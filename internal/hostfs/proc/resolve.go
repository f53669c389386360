package proc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Openers is the driver's list for one device: for each open file description,
// the pid of the process that opened it. Pids repeat, may be 0 (not in the
// reader's pid namespace), and may belong to processes that have exited since.
// PIDs is missing where the driver has no list (before 2.5) or did not answer.
type Openers struct {
	Device int
	BusID  string
	PIDs   model.Reading[[]int]
	Once   bool // each process stands in it once, however often it has opened the device
}

// Users are the processes that use the devices of a host.
type Users struct {
	Processes []model.Process // by pid, then start time
	Coverage  Coverage        // of the scan of /proc/*/fd, if one was needed
	// Doubts say, per device, what is uncertain.
	Doubts map[int][]model.Doubt
	// Locking counts the descriptors of processes left out because they only hold
	// the driver's locks.
	Locking int
	// Engines are those that worked for processes, where the driver says so, as of Read.
	Engines map[EngineUser][]Engine
	Read    time.Time
}

// Resolve turns the driver's lists into processes. driver is its version: until
// 2.6 the pids were those of the opener's own pid namespace and count only if
// that process is found to hold the device.
//
// /proc/*/fd is scanned only if the lists leave something open: a device
// without one, an opener that has exited or does not hold the device any more.
// The scan then finds the process that inherited the descriptor. While the
// opener runs and holds it, an inherited descriptor counts as the opener's.
func (r *Reader) Resolve(ctx context.Context, devices []Openers, driver string) (Users, error) {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return Users{}, fmt.Errorf("cannot list the users of devices: %w", err)
	}
	defer proc.Close()
	r.StartSweep()
	r.users.refresh()
	r.descriptors.startSweep(r.root)
	res := resolution{
		r: r, proc: proc, trusted: r.view.ownPIDs && !listsInnerPIDs(driver),
		described: map[int]*model.Process{}, uses: map[model.ProcessID]*model.Process{},
		hidden: map[int]*model.DeviceUse{}, doubts: map[int][]model.Doubt{}, openers: map[openerKey]*opener{},
	}
	claims := res.collapseLists(devices)
	// A mount of the host's /proc shows what the zeros stand for.
	res.scanWanted = res.scanWanted || !r.view.ownPIDs && len(res.hidden) > 0
	for _, c := range claims {
		if res.trusted {
			res.checkClaim(c)
		}
		res.scanWanted = res.scanWanted || c.verdict != holder
	}
	if res.scanWanted {
		if err := res.scanHolders(ctx, proc); err != nil {
			return Users{}, err
		}
		res.addUnlisted(devices, claims)
	}
	locking := res.dropLockOnly()
	now := time.Now()
	busIDs := map[int]string{}
	for i := range devices {
		busIDs[devices[i].Device] = devices[i].BusID
	}
	engines := map[EngineUser][]Engine{}
	for _, p := range res.uses {
		r.addFDInfo(p, busIDs, now, engines)
	}
	r.openers = res.openers
	r.dropUnused(now)
	users := res.result()
	users.Locking, users.Engines, users.Read = locking, engines, now
	return users, nil
}

// listsInnerPIDs reports whether a driver lists pids of the opener's pid
// namespace instead of the reader's.
func listsInnerPIDs(version string) bool {
	return strings.HasPrefix(version, "2.5.") || strings.HasPrefix(version, "2.6.") ||
		version == "2.5" || version == "2.6"
}

// claim is the driver's statement that a process has a device open.
type claim struct {
	device, pid int
	lines       int // open file descriptions
	once        bool
	verdict     verdict
}

// verdict is the result of checking a claim.
type verdict int

const (
	unchecked    verdict = iota
	holder               // it holds the device, or we cannot check and trust the driver
	openerExited         // the opener has exited; its pid may be in use again
	passedOn             // it runs and no longer holds the device
)

type openerKey struct{ device, pid int }

// opener is the last description of a listed process that was running: it
// identifies the process after its pid has been reused.
type opener struct {
	start uint64
	last  model.Process
}

func newOpener(p *model.Process) *opener {
	o := &opener{p.StartTicks, *p}
	o.last.Condition = "" // that of a running process
	return o
}

// resolution is one call of Resolve.
type resolution struct {
	r          *Reader
	proc       hostfs.Dir
	trusted    bool // pids are those of our namespace and of the tree's /proc
	scanWanted bool
	found      holderScan
	described  map[int]*model.Process
	uses       map[model.ProcessID]*model.Process
	hidden     map[int]*model.DeviceUse // by device
	doubts     map[int][]model.Doubt
	openers    map[openerKey]*opener
	compared   int // pairs of descriptors
}

// collapseLists makes one claim of the lines of a process, per device. Zeros,
// and other numbers that cannot be a pid, become hidden openers.
func (res *resolution) collapseLists(devices []Openers) (claims []*claim) {
	for _, d := range devices {
		pids, ok := d.PIDs.Get()
		if !ok {
			res.scanWanted = true
			continue
		}
		byPID := map[int]*claim{}
		for _, pid := range pids {
			switch c := byPID[pid]; {
			case pid == res.r.view.self && res.trusted:
			case pid <= 0:
				res.addHidden(d.Device, 1, model.NamespaceHidden)
			case c != nil:
				c.lines++
			default:
				c = &claim{device: d.Device, pid: pid, lines: 1, once: d.Once}
				byPID[pid] = c
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// describe describes a process, once per call of Resolve.
func (res *resolution) describe(pid int) *model.Process {
	p := res.described[pid]
	if p == nil {
		p = new(res.r.describe(pid))
		res.described[pid] = p
	}
	return p
}

// checkClaim checks whether a listed process runs and holds the device.
func (res *resolution) checkClaim(c *claim) {
	p := res.describe(c.pid)
	key := openerKey{c.device, c.pid}
	before := res.r.openers[key]
	c.verdict = openerExited
	var doubts []model.Doubt
	if p.State == model.Running {
		c.verdict, doubts = res.checkRunning(c, p, before)
	}
	use := model.DeviceUse{Device: c.device, OpenFDs: model.Value(c.lines), Doubts: doubts}
	if c.once {
		use.OpenFDs = model.Missing[int](model.Denied, "the driver lists each process once")
	}
	switch c.verdict {
	case holder:
		res.openers[key] = newOpener(p)
		res.addUse(p, use)
	case passedOn:
		res.openers[key] = newOpener(p)
	default:
		gone := exitedProcess(c.pid)
		if before != nil {
			res.openers[key], gone = before, before.last
			markExited(&gone)
		}
		if p.State == model.Exited && p.StartTicks != 0 && (before == nil || before.start == p.StartTicks) {
			gone = *p // a zombie can still be described
		}
		res.addUse(&gone, use)
	}
}

// checkRunning checks a listed process that runs. The doubt says how it holds
// the device if not by a descriptor.
func (res *resolution) checkRunning(c *claim, p *model.Process, before *opener) (v verdict, doubts []model.Doubt) {
	how, fds := res.r.checkHold(res.proc, c.pid, c.device)
	switch {
	case how == Held:
		if c.once {
			c.lines, c.once = len(fds), false
		}
		return holder, nil
	case how == NoSuchProcess: // it exited between two reads
		return openerExited, nil
	case before != nil && before.start != 0 && p.StartTicks != 0 && before.start != p.StartTicks:
		return openerExited, nil // the pid was reused: the new process did not open the device
	case how == NotHeld:
		return passedOn, nil
	case how == HeldByMap:
		return holder, []model.Doubt{{Kind: model.MappedOnly}}
	default:
		return holder, nil
	}
}

// addUse records that a process uses a device.
func (res *resolution) addUse(p *model.Process, u model.DeviceUse) {
	id := model.ProcessID{PID: p.PID, StartTicks: p.StartTicks}
	known := res.uses[id]
	if known == nil {
		known = new(*p)
		known.Devices = nil
		res.uses[id] = known
	}
	known.Devices = append(known.Devices, u)
}

// addHidden records descriptors of a device whose process is unknown.
func (res *resolution) addHidden(device, count int, why model.DoubtKind) {
	u := res.hidden[device]
	if u == nil {
		u = &model.DeviceUse{Device: device, Doubts: []model.Doubt{{Kind: why}}}
		res.hidden[device] = u
	}
	u.OpenFDs = model.Value(u.OpenFDs.V + count)
}

// result returns the users found, sorted.
func (res *resolution) result() Users {
	if len(res.hidden) > 0 {
		unseen := withoutReadings(0, model.Hidden, model.Denied, "the process is not visible from here")
		for _, u := range res.hidden {
			unseen.Devices = append(unseen.Devices, *u)
		}
		res.uses[model.ProcessID{}] = &unseen
	}
	out := Users{Coverage: res.found.Coverage, Doubts: res.doubts}
	for _, p := range slices.SortedFunc(maps.Values(res.uses), byIdentity) {
		sorted.By(p.Devices, func(a, b *model.DeviceUse) int { return cmp.Compare(a.Device, b.Device) })
		out.Processes = append(out.Processes, *p)
	}
	return out
}

func byIdentity(a, b *model.Process) int {
	return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.StartTicks, b.StartTicks))
}
