package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/collect/gather"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/source/allocsock"
	"github.com/ttmon/ttmon/internal/source/firmware"
	"github.com/ttmon/ttmon/internal/source/kmsg"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// background makes snapshots and publishes them.
type background struct {
	pace      *pace
	log       *slog.Logger
	reports   *reports
	feed      api.Feed
	devices   atomic.Pointer[[]allocsock.DeviceInfo]
	collector *collect.Collector
	pods      *pods
	firmware  *firmware.Source
	leftLines map[int]budget.Meter // lines of the log about what users' processes left
	kernelLog *kmsg.Reader
	failures  *gather.Gatherer
	lines     *atpeak.Store
	idle      *idleFile
	found     map[string]bool // devices that the log has, by bus id
}

// newBackground makes the collector. learned is what that of a predecessor
// knew; nil if there was none. watched is who watches allocators.
func newBackground(c Config, may memoryBudget, log *slog.Logger, l *ledger.Ledger, learned *collect.Learned, watched *watcher) *background {
	b := &background{
		pace: newPace(c.Collect.Interval.Duration), leftLines: map[int]budget.Meter{},
		log:     log,
		pods:    newPods(c, log),
		reports: &reports{ledger: l, processes: proc.New(hostfs.Root{}), visible: map[model.ProcessID]string{}},
	}
	b.firmware, b.kernelLog = newFirmware(c, log), kmsg.New(hostfs.At(c.Root))
	b.collector = collect.New(hostfs.At(c.Root), collect.Options{
		Timeout: c.Collect.Timeout.Duration, Thresholds: c.Conditions,
		Sources: []collect.Source{{Name: "alloc", Claims: b.reports.Claims}, {Name: "uprobe", Claims: watched.Claims, Find: watched.find}}, FullScan: fullScan, Unopened: c.Alloc.Unopened,
		Origin: model.Daemon, Pods: b.pods.current,
		Ledgers: track.Options{Remove: true, All: true, RunTimeout: time.Minute, Memory: may.ledgers}, Ended: b.ledgerLeft, Exited: b.exited,
		Telemetry: b.firmware, Log: b.kernelLog.Lines, OOMKills: b.oomKills(c.Root),
	})
	if learned != nil {
		b.collector.Restore(learned)
	}
	b.idle = newIdleFile(c.StateDir, log)
	b.collector.RestoreIdlePower(b.idle.kept)
	return b
}

// firstPIDNamespace is the pid namespace of the kernel's own, whose numbers are in
// its log.
const firstPIDNamespace = "pid:[4026531836]"

// oomKills reads from the kernel's log which processes were killed for want
// of memory; nil: it has other numbers for processes than /proc.
func (b *background) oomKills(root string) func() ([]model.OOMKill, bool) {
	if name, err := hostfs.At(root).Readlink("/proc/1/ns/pid"); err != nil || name != firstPIDNamespace {
		return nil
	}
	return b.kernelLog.OOMKills
}

// ledgerLeft reports a process that kept a ledger and did not come to its end
// in good order.
func (b *background) ledgerLeft(e track.Ended) {
	b.failures.Ended(e)
	if e.Ledger.Flags&ledgerfile.Ended != 0 { // of a ttmon run, which leaves its ledgers to us
		return
	}
	m, now := b.leftLines[e.UID], time.Now()
	if m.Part = 1; m.Spent(now) > time.Minute || len(b.leftLines) > 1024 {
		return // a user can leave what it likes: no more than a line a second
	}
	m.Add(time.Second, now)
	b.leftLines[e.UID] = m
	var blocks, bytes uint64
	for i := range e.Ledger.Lists {
		l := &e.Ledger.Lists[i]
		blocks, bytes = blocks+l.Live.Blocks, bytes+l.Live.Bytes*uint64(l.Banks)
	}
	b.log.Info("process exited with device memory still allocated", "pid", e.Ledger.PID, "name", e.Ledger.Comm, "uid", e.UID,
		"blocks", blocks, "bytes", bytes)
}

// fullScan is how often all processes are scanned for regions in
// containers of their own. It costs about 10 ms with a thousand processes.
const fullScan = time.Minute

// reportTimeout is how long a snapshot waits for what clients have sent. It takes a tenth
// of a millisecond, unless the machine is busy.
const reportTimeout = 50 * time.Millisecond

// run collects until ctx is done.
func (b *background) run(ctx context.Context, server *allocsock.Server) error {
	b.reports.since = server.Since
	b.reports.receive = func() { server.Receive(reportTimeout) }
	defer b.collector.Close()
	defer b.firmware.Close()
	defer b.kernelLog.Close()
	b.pace.run(ctx, func(ctx context.Context, extra bool) time.Duration {
		begun, used := time.Now(), processTime()
		b.collect(ctx, extra)
		// On a busy machine it waits for a core; other threads use some meanwhile.
		return min(time.Since(begun), processTime()-used)
	})
	return nil
}

// processTime is how long this process has used a core.
func processTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it fails only for arguments that do not exist
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// collect makes one snapshot. The collector keeps its own deadline. One that is extra is
// no reason to touch a chip.
func (b *background) collect(ctx context.Context, extra bool) {
	begun := time.Now()
	s := b.collector.Collect(ctx)
	infos := deviceInfos(s)
	b.devices.Store(&infos)
	if b.failures != nil {
		b.failures.Fill(s)
	}
	b.reports.ledger.SetCapacity(largest(infos))
	b.feed.PublishSample(s, api.Sample{Began: begun, Extra: extra})
	if extra {
		return
	}
	b.firmware.Sample(s.Host.DriverVersion.V, collect.Readable(s))
	b.idle.keep(b.collector.IdlePower())
	b.logDevices(s)
}

// logDevices logs the devices that came or went since the last snapshot; at the start,
// all there are.
func (b *background) logDevices(s *model.Snapshot) {
	before := b.found
	b.found = map[string]bool{}
	for i := range s.Devices {
		d := &s.Devices[i]
		b.found[d.BusID] = true
		if before[d.BusID] {
			continue
		}
		args := []any{"index", d.Index, "bus_id", d.BusID, "board", d.Board.V, "arch", d.Arch, "chips", len(d.Chips)}
		for _, pool := range []model.Pool{model.DRAM, model.L1} {
			if total := d.Memory.Pools[pool].Total; total.Known() {
				args = append(args, pool.String()+"_bytes", total.V)
			}
		}
		b.log.Info("device found", args...)
	}
	for bus := range before {
		if !b.found[bus] {
			b.log.Info("device gone", "bus_id", bus)
		}
	}
}

// largest is what the largest chip has of each pool; 0 where that is not known.
func largest(infos []allocsock.DeviceInfo) (capacity [ledger.NumPools]uint64) {
	for _, info := range infos {
		if info.DRAMBytes == 0 || info.L1Bytes == 0 {
			return [ledger.NumPools]uint64{} // one that we do not know may be larger
		}
		for pool, has := range map[model.Pool]uint64{
			model.DRAM: info.DRAMBytes, model.Trace: info.DRAMBytes, model.L1: info.L1Bytes, model.L1Small: info.L1Bytes,
		} {
			capacity[pool] = max(capacity[pool], has)
		}
	}
	return capacity
}

// deviceInfo is what the allocation server says about the chips.
func (b *background) deviceInfo() []allocsock.DeviceInfo {
	if p := b.devices.Load(); p != nil {
		return *p
	}
	return nil
}

// deviceInfos describes the chips in the order in which tt-metal numbers them.
func deviceInfos(s *model.Snapshot) (infos []allocsock.DeviceInfo) {
	for _, at := range collect.ChipOrder(s.Devices) {
		d := &s.Devices[at.Device]
		info := allocsock.DeviceInfo{Arch: allocsock.ArchNumber(d.Arch)}
		if at.Chip < len(d.Chips) {
			info.DRAMBytes = d.Chips[at.Chip].Memory.Pools[model.DRAM].Total.V
		}
		if card, ok := board.ByCard(d.Board.V); ok {
			info.DRAMChannels = uint32(card.Banks)
			info.DRAMPerChannel = uint32(min(card.BankBytes, 1<<32-1))
			info.L1PerCore = uint32(card.L1PerCore)
			info.L1Bytes = card.L1Bytes(d.Firmware.Bundle.V).V
		}
		infos = append(infos, info)
	}
	return infos
}

// reports is what processes report to the allocation server, as a source.
type reports struct {
	ledger *ledger.Ledger
	since  func() allocsock.Since
	// receive has what was sent before it was called accounted in the ledger.
	receive func()
	// Reporters are processes of our own pid namespace, so they are read from our
	// own /proc, wherever the collector's root is.
	processes *proc.Reader
	visible   map[model.ProcessID]string // TT_VISIBLE_DEVICES, which does not change
}

// Claims is what the reporters hold.
func (r *reports) Claims() claim.Set {
	r.receive()
	since := r.since()
	r.processes.StartSweep()
	defer r.processes.EndSweep()
	seen := map[model.ProcessID]string{}
	set := r.ledger.Claims(ledger.Account{Ticks: since.Ticks, Since: since.Time}, func(k model.ProcessID) string {
		visible, ok := r.visibleDevices(k)
		if ok {
			seen[k] = visible
		}
		return visible
	})
	r.visible = seen
	set.Describe = r.describe
	return set
}

// describe returns what is known of reporters that have no device open.
func (r *reports) describe(pids []int) []model.Process {
	r.processes.StartSweep()
	defer r.processes.EndSweep()
	return r.processes.Describe(pids)
}

// visibleDevices is false where it could not be read, this time: the process
// may have ended, be another user's while we are not root, or keep us waiting.
func (r *reports) visibleDevices(k model.ProcessID) (visible string, ok bool) {
	if v, ok := r.visible[k]; ok {
		return v, true
	}
	const variable = "TT_VISIBLE_DEVICES"
	p, err := r.processes.Process(k.PID)
	if err != nil || p.StartTicks != k.StartTicks {
		return "", false
	}
	env, err := r.processes.Environ(p, func(key string) bool { return key == variable })
	return env[variable], err == nil
}
