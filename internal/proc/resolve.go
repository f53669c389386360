package proc

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sorted"
)

// Openers is what the driver says about one device: a number for each open
// file description, of the process that opened it. Numbers repeat, may be 0
// (not in the reader's pid namespace), and may belong to processes that have
// exited since. PIDs is missing where the driver keeps no list (before 2.5) or
// did not answer.
type Openers struct {
	Device int
	PIDs   model.Reading[[]int]
}

// Users is who uses the devices of a host.
type Users struct {
	Processes []model.Process // by pid, then start time
	Coverage  Coverage        // of the scan of /proc/*/fd, if one was needed
	// Doubts say, per device, what could not be told.
	Doubts map[int][]model.Doubt
	// Locking counts descriptors of processes that are not listed: they only
	// hold the driver's locks.
	Locking int
}

// Resolve turns the driver's lists into processes. driver is its version:
// until 2.6 the numbers were those of the opener's own pid namespace and are
// believed only if that process is found to hold the device.
//
// /proc/*/fd is scanned only if the lists leave something open: a device
// without one, an opener that has exited or does not hold the device any more.
// The scan then finds who inherited the descriptor. While its opener lives and
// holds it, an inherited descriptor is the opener's.
func (r *Reader) Resolve(ctx context.Context, devices []Openers, driver string) (Users, error) {
	proc, err := r.root.OpenDir("/proc")
	if err != nil {
		return Users{}, fmt.Errorf("looking for the users of devices: %w", err)
	}
	defer proc.Close()
	r.Begin()
	r.users.refresh()
	r.descriptors.begin(r.root)
	res := resolution{
		r: r, proc: proc, trusted: r.view.ours && !openerNumbers(driver),
		described: map[int]*model.Process{}, uses: map[model.ProcessID]*model.Process{},
		hidden: map[int]*model.DeviceUse{}, doubts: map[int][]model.Doubt{}, openers: map[openerKey]*opener{},
	}
	claims := res.collect(devices)
	// A mount of the host's /proc shows what the zeros stand for.
	res.scanWanted = res.scanWanted || !r.view.ours && len(res.hidden) > 0
	for _, c := range claims {
		if res.trusted {
			res.judge(c)
		}
		res.scanWanted = res.scanWanted || c.verdict != holder
	}
	if res.scanWanted {
		if err := res.scan(ctx, proc); err != nil {
			return Users{}, err
		}
		res.complete(devices, claims)
	}
	locking := res.dropLockOnly()
	now := time.Now()
	for _, p := range res.uses {
		r.addMemory(p, now)
	}
	r.openers = res.openers
	r.forget(now)
	users := res.users()
	users.Locking = locking
	return users, nil
}

// openerNumbers tells whether a driver lists numbers of the opener's pid
// namespace instead of the reader's.
func openerNumbers(version string) bool {
	return strings.HasPrefix(version, "2.5.") || strings.HasPrefix(version, "2.6.") ||
		version == "2.5" || version == "2.6"
}

// claim is the driver's word that a process has a device open.
type claim struct {
	device, pid int
	lines       int // open file descriptions
	verdict     verdict
}

// verdict is what became of a claim.
type verdict int

const (
	unjudged verdict = iota
	holder           // it holds the device, or we may not look and believe the driver
	dead             // the opener has exited; its number may be in use again
	passedOn         // it lives and does not hold the device
)

type openerKey struct{ device, pid int }

// opener is what is remembered of a process from when it was seen alive and
// listed: whose number it was, should it be given to another process.
type opener struct {
	start uint64
	last  model.Process
}

func remembered(p *model.Process) *opener {
	o := &opener{p.StartTicks, *p}
	o.last.Condition = "" // it is about its life
	return o
}

// resolution is one call of Resolve.
type resolution struct {
	r          *Reader
	proc       hostfs.Dir
	trusted    bool // numbers are those of our namespace and of the tree's /proc
	scanWanted bool
	found      holderScan
	described  map[int]*model.Process
	uses       map[model.ProcessID]*model.Process
	hidden     map[int]*model.DeviceUse // by device
	doubts     map[int][]model.Doubt
	openers    map[openerKey]*opener
	compared   int // pairs of descriptors
}

// collect collapses the lines of each device. Zeros, and whatever else cannot
// be a pid, become hidden openers.
func (res *resolution) collect(devices []Openers) (claims []*claim) {
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
				res.hide(d.Device, 1, model.NamespaceHidden)
			case c != nil:
				c.lines++
			default:
				c = &claim{device: d.Device, pid: pid, lines: 1}
				byPID[pid] = c
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// describe tells what is known about a process, once per call.
func (res *resolution) describe(pid int) *model.Process {
	p := res.described[pid]
	if p == nil {
		p = new(res.r.describe(pid))
		res.described[pid] = p
	}
	return p
}

// judge looks at a listed process: is it there, and does it hold the device?
func (res *resolution) judge(c *claim) {
	p := res.describe(c.pid)
	key := openerKey{c.device, c.pid}
	before := res.r.openers[key]
	c.verdict = dead
	use := model.DeviceUse{Device: c.device, OpenFDs: model.Value(c.lines)}
	if p.State == model.Running {
		c.verdict, use.Doubts = res.ask(c, p, before)
	}
	switch c.verdict {
	case holder:
		res.openers[key] = remembered(p)
		res.use(p, use)
	case passedOn:
		res.openers[key] = remembered(p)
	default:
		gone := neverSeen(c.pid)
		if before != nil {
			res.openers[key], gone = before, before.last
			exited(&gone)
		}
		if p.State == model.Exited && p.StartTicks != 0 && (before == nil || before.start == p.StartTicks) {
			gone = *p // a zombie can still be asked
		}
		res.use(&gone, use)
	}
}

// ask judges a listed process that lives. The doubt says how it holds the
// device if that is not by a descriptor.
func (res *resolution) ask(c *claim, p *model.Process, before *opener) (v verdict, doubts []model.Doubt) {
	how, _ := res.r.check(res.proc, c.pid, c.device)
	switch {
	case how == held:
		return holder, nil
	case how == noSuchProcess: // it ended between two looks
		return dead, nil
	case before != nil && before.start != 0 && p.StartTicks != 0 && before.start != p.StartTicks:
		return dead, nil // another process has the number now; it is not to blame
	case how == notHeld:
		return passedOn, nil
	case how == heldByMap:
		return holder, []model.Doubt{{Kind: model.MappedOnly}}
	default:
		return holder, nil
	}
}

// use enters that a process uses a device.
func (res *resolution) use(p *model.Process, u model.DeviceUse) {
	id := model.ProcessID{PID: p.PID, StartTicks: p.StartTicks}
	known := res.uses[id]
	if known == nil {
		known = new(*p)
		known.Devices = nil
		res.uses[id] = known
	}
	known.Devices = append(known.Devices, u)
}

// hide enters descriptors of a device whose process cannot be told.
func (res *resolution) hide(device, count int, why model.DoubtKind) {
	u := res.hidden[device]
	if u == nil {
		u = &model.DeviceUse{Device: device, Doubts: []model.Doubt{{Kind: why}}}
		res.hidden[device] = u
	}
	u.OpenFDs = model.Value(u.OpenFDs.V + count)
}

// users puts the result together.
func (res *resolution) users() Users {
	if len(res.hidden) > 0 {
		unseen := undescribed(0, model.Hidden, model.Denied, "which process it is cannot be seen from here")
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
