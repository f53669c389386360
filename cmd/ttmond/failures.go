package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/failure/keep"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/why"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// failures gathers allocations that failed, from the probes and from ledgers,
// keeps them, and makes events of them.
type failures struct {
	store *keep.Store
	d     *ttmond
	// seen says how many failures of a ledger were taken, by path and number.
	mu    sync.Mutex
	seen  map[string]map[uint64]uint64
	ended []track.Ended
	// counts are the failures on each chip since ttmond began to count.
	counts map[uint64]uint64
}

func newFailures(d *ttmond) *failures {
	return &failures{
		d: d, seen: map[string]map[uint64]uint64{}, counts: map[uint64]uint64{},
		store: keep.Open(filepath.Join(d.cfg.StateDir, "failures"), keep.Limits{}, d.log),
	}
}

// failuresEvery is how often failures are gathered. A program that dies of one
// lives a little longer, in which its ledger can be read.
const failuresEvery = 100 * time.Millisecond

// run gathers failures until ctx is done.
func (f *failures) run(ctx context.Context) error {
	tick := time.NewTicker(failuresEvery)
	defer tick.Stop()
	defer f.store.Flush()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		f.gather(n%10 == 0)
	}
}

// gather takes what has come since. Ledgers are looked through less often, but for
// those of processes that the probes have seen fail.
func (f *failures) gather(all bool) {
	var list []*failure.Record
	if s := f.d.watcher.source; s != nil {
		list = s.Failures()
	}
	for _, r := range list {
		f.add(r)
		f.fromFile(r.Process.PID)
	}
	if !all {
		return
	}
	ledgers := f.d.collector.collector.Ledgers()
	paths := map[string]bool{}
	for i := range ledgers {
		p := &ledgers[i]
		paths[p.Path] = true
		uid, err := proc.Owner(hostfs.Root{}, p.PID)
		if err != nil {
			uid = -1
		}
		f.fromLedger(p.Path, p.Ledger, failure.Process{PID: p.PID, Start: p.Start, UID: uid, Name: p.Ledger.Comm})
	}
	f.mu.Lock()
	ended := f.ended
	f.ended = nil
	f.mu.Unlock()
	for _, e := range ended {
		f.fromLedger(e.Path, e.Ledger, failure.Process{PID: e.Ledger.PID, Start: e.Ledger.StartTicks, UID: e.UID, Name: e.Ledger.Comm})
	}
	for path := range f.seen {
		if !paths[path] {
			delete(f.seen, path)
		}
	}
}

// maxEnded bounds the ledgers of dead processes that wait to be looked through.
const maxEnded = 64

// ledgerEnded takes the ledger of a process that has ended; called by the
// collector.
func (f *failures) ledgerEnded(e track.Ended) {
	if f == nil || len(e.Ledger.Failures) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ended) < maxEnded {
		f.ended = append(f.ended, e)
	}
}

// maxLedger is what the copy of a ledger may take that is read between sweeps.
const maxLedger = 64 << 20

// fromFile reads the ledger of a process that has just failed, before it ends:
// it may be younger than the last sweep. The kernel says who keeps the file.
func (f *failures) fromFile(pid int) {
	uid, err := proc.Owner(hostfs.Root{}, pid)
	if err != nil {
		return
	}
	paths, _ := filepath.Glob(fmt.Sprintf("/dev/shm/%s%d-*", ledgerfile.Prefix, pid))
	for _, path := range paths[:min(len(paths), 4)] {
		if l, start, ok := readLedger(path, pid, uid); ok {
			f.fromLedger(path, l, failure.Process{PID: pid, Start: start, UID: uid, Name: l.Comm})
		}
	}
}

// readLedger reads the ledger that a process of a user keeps.
func readLedger(path string, pid, uid int) (l *ledgerfile.Ledger, start uint64, ok bool) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != uid {
		return nil, 0, false
	}
	if holder, held, err := ledgerfile.Holder(fd); err != nil || !held || holder != pid {
		return nil, 0, false
	}
	stat, err := proc.ReadStat(hostfs.Root{}, pid)
	if err != nil {
		return nil, 0, false
	}
	r := ledgerfile.Reader{MaxMemory: maxLedger}
	l, err = r.Read(fd)
	return l, stat.Start, err == nil
}

// fromLedger takes the failures of a ledger that are new.
func (f *failures) fromLedger(path string, l *ledgerfile.Ledger, who failure.Process) {
	for i := range l.Failures {
		x := &l.Failures[i]
		if f.seen[path][x.Number] >= x.Count {
			continue
		}
		if f.seen[path] == nil {
			f.seen[path] = map[uint64]uint64{}
		}
		f.seen[path][x.Number] = x.Count
		if r, ok := failure.FromLedger(l, x, who); ok {
			f.add(r)
		}
	}
}

// add judges a record, keeps it, and makes an event of it if it is new.
func (f *failures) add(r *failure.Record) {
	if s := f.d.collector.feed.Latest(); s != nil {
		r.Place(s)
	}
	identify(&r.Process)
	if r.State != nil {
		r.Judge()
	}
	f.count(r)
	id, fresh := f.store.Add(r)
	if !fresh {
		return
	}
	f.d.log.Info("allocation failed", "id", id, "pid", r.Process.PID, "uid", r.Process.UID, "pool", r.Pool, "bank_bytes", r.Need(), "cause", r.Verdict.Cause)
	events := f.d.backlog.Events()
	if events == nil {
		return
	}
	e := eventlog.Event{
		Time: r.Time, Kind: eventlog.KindNoRoom, Level: eventlog.Warning, Short: strconv.Itoa(r.Process.PID) + " no room", Text: why.Event(r, false),
		Process: true, Failure: id,
	}
	for _, c := range r.Chips {
		if c.BusID != "" {
			e.Devices = append(e.Devices, c.BusID)
		}
	}
	if err := events.Append(e); err != nil {
		f.d.log.Warn("event backlog is in memory only", "err", err)
	}
}

// identify asks the kernel who a process is that no snapshot has yet.
func identify(p *failure.Process) {
	dir := "/proc/" + strconv.Itoa(p.PID) + "/"
	if st, err := proc.ReadStat(hostfs.Root{}, p.PID); err != nil || p.Start != 0 && st.Start != p.Start {
		return // it has ended
	} else if p.Start == 0 {
		p.Start = st.Start
	}
	if p.UID < 0 {
		if uid, err := proc.Owner(hostfs.Root{}, p.PID); err == nil {
			p.UID = uid
		}
	}
	if p.Name == "" {
		p.Name = firstLine(dir + "comm")
	}
	if p.Command == "" {
		p.Command = firstLine(dir + "cmdline")
	}
}

// firstLine reads a short file of /proc.
func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var b [1024]byte
	n, _ := f.Read(b[:])
	text, _, _ := strings.Cut(string(b[:n]), "\n")
	return strings.TrimSpace(strings.ReplaceAll(text, "\x00", " "))
}

// count counts a failure for each of its chips. What libttmon saw of a process
// that the probes watch, too, is not counted again.
func (f *failures) count(r *failure.Record) {
	if r.Source == string(model.FromTrack) && f.d.watcher.source != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range r.Chips {
		if len(f.counts) < 4096 || f.counts[c.ID] > 0 {
			f.counts[c.ID] += r.Count
		}
	}
}

// fill puts the counts into a snapshot that is about to be published.
func (f *failures) fill(s *model.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range s.Devices {
		d := &s.Devices[i]
		var n uint64
		for _, chip := range d.Chips {
			if id, ok := chip.ID.Get(); ok {
				n += f.counts[id]
			}
		}
		d.AllocationFailures = model.Value(n)
	}
}
