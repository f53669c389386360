package kmd

import (
	"runtime"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// stall is how long one device may take before those behind it in its group
// are read without it. A healthy one takes a millisecond.
const stall = 50 * time.Millisecond

// grace extends the deadline until a read of every chip has at least started,
// on a machine too busy to do so in time. A missed deadline says something
// about a chip only if it was read.
const grace = 2 * time.Second

// group is a number of devices that are read one after the other, in one batch.
// Making a batch costs more than reading a healthy device, so there is one
// batch per CPU; only when a device blocks its group do the devices behind it
// get batches of their own.
type group struct {
	batch   *groupBatch
	devices []*device
	front   int // device that is being read
	since   time.Time
}

// groupBatch is a batch with room for a number of devices.
type groupBatch struct {
	*hostfs.Batch
	room  int
	inUse bool // its results are still wanted
}

// readAll reads the devices until the deadline. Devices that are still stuck in
// an earlier round are not read again.
func (r *Reader) readAll(devices []*device, deadline time.Time) {
	for _, b := range r.batches {
		b.inUse = false
	}
	idle := make([]*device, 0, len(devices))
	for _, d := range devices {
		if d.busy() {
			d.batch.inUse = true
		} else {
			idle = append(idle, d)
		}
	}
	now := time.Now()
	var groups []*group
	share := max(1, (len(idle)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for len(idle) > 0 {
		n := min(share, len(idle))
		groups = r.start(groups, idle[:n], func(d *device, b *groupBatch) { d.queue(b, now) })
		idle = idle[n:]
	}
	for limit := deadline.Add(r.grace); len(groups) > 0; {
		wait(groups, deadline)
		now := time.Now()
		groups = r.split(groups, now)
		if now.Before(deadline) {
			continue
		}
		if now.After(limit) || !slices.ContainsFunc(groups, (*group).hasUnread) {
			for _, g := range groups {
				g.batch.Kill() // else it reads the other files once a reset releases it, in the middle of that
			}
			return
		}
		deadline = now.Add(4 * stall)
	}
}

// start starts reading devices in one batch.
func (r *Reader) start(groups []*group, devices []*device, queue func(*device, *groupBatch)) []*group {
	b, err := r.acquireBatch(len(devices))
	for _, d := range devices {
		if err == nil {
			queue(d, b)
		}
	}
	if err == nil {
		err = b.Start()
	}
	if err != nil {
		for _, d := range devices {
			d.failReads(err)
		}
		return groups
	}
	return append(groups, &group{batch: b, devices: devices, since: time.Now()})
}

// split drops the groups that are done, and moves the devices behind one that
// blocks its group to batches of their own.
func (r *Reader) split(groups []*group, now time.Time) []*group {
	var next []*group
	for _, g := range groups {
		if !g.batch.Reap() {
			continue
		}
		if front := g.current(); front != g.front {
			g.front, g.since = front, now
		}
		if now.Sub(g.since) >= stall {
			for _, d := range g.devices[g.front+1:] {
				next = r.start(next, []*device{d}, (*device).queueAgain)
			}
			g.devices = g.devices[:g.front+1]
		}
		next = append(next, g)
	}
	return next
}

// hasUnread reports whether the group has a chip that has not been read yet:
// one behind the front, or the front itself while files are read that come from
// the PCI core and not from the chip.
func (g *group) hasUnread() bool {
	if g.front < len(g.devices)-1 {
		return true
	}
	i := g.devices[g.front].stuckAt(numFiles)
	return i >= 0 && i < len(attrs) && (attrs[i].in == inPCI || attrs[i].in == inParent)
}

// current is the device that is being read.
func (g *group) current() int {
	done := g.batch.Done()
	for i, d := range g.devices {
		for _, n := range d.queued {
			if n >= done {
				return i
			}
		}
	}
	return len(g.devices) - 1
}

// wait waits until all groups are done, or it is time to check them.
func wait(groups []*group, deadline time.Time) {
	batches := make([]*hostfs.Batch, len(groups))
	for i, g := range groups {
		batches[i] = g.batch.Batch
	}
	if recheck := time.Now().Add(stall / 2); recheck.Before(deadline) {
		deadline = recheck
	}
	hostfs.Wait(batches, deadline)
}

// acquireBatch returns a batch that is not in use, or a new one.
func (r *Reader) acquireBatch(devices int) (*groupBatch, error) {
	for _, b := range r.batches {
		if b.room >= devices && !b.inUse && !b.Reap() {
			b.Reset()
			b.inUse = true
			return b, nil
		}
	}
	b, err := hostfs.NewBatch(devices*numFiles, devices*deviceBytes())
	if err != nil {
		return nil, err
	}
	g := &groupBatch{Batch: b, room: devices, inUse: true}
	r.batches = append(r.batches, g)
	return g, nil
}
