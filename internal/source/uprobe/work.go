package uprobe

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/uprobe/pages"
)

// profiler is where tt-metal's real-time profiler keeps things that are read at
// its probes, in bytes: a DeviceState its clock, a DataCollector its table of
// programs' sources. Of releases that have it elsewhere the clock cannot be true.
type profiler struct{ ticks, table uint16 }

// collectorMade is the constructor of the collector that has the table of sources,
// since 0.77: it keeps a reference in front of the table.
const collectorMade = "_ZN2tt8tt_metal13DataCollectorC1ERNS0_12MetalEnvImplE"

// placeProfiler finds out where a library's profiler keeps things: by the
// functions that the library has.
func placeProfiler(probes []probe, all []symbol) {
	table := uint16(0x128) // 0.76
	if slices.ContainsFunc(all, func(s symbol) bool { return s.name == collectorMade }) {
		table = 0x130
	}
	for i := range probes {
		switch p := &probes[i]; p.site {
		case atPages: // since 0.80
			p.work = profiler{0xb0, 0x130}
		case atPagesConst:
			p.work = profiler{0x80, table}
		}
	}
}

// account is what the chips of a process report.
func (p *process) account() *pages.Process {
	if p.work == nil {
		p.work = pages.NewProcess()
	}
	return p.work
}

// applyWork enters what a process does with its profiler, queues and devices.
func (p *process) applyWork(e *event, at int64) {
	value := uint32(about[workEvent](e).Value)
	switch e.kind {
	case workOn, workOnOld:
		p.account().Open(value, at)
	case workOff, workOffOld:
		p.account().Close(value, at)
	case queueMade:
		p.account().Queue(value)
	case subDevicesMade:
		p.account().Divide(value)
		p.divided = division{parts: value}
	case subDevicesLoaded:
		p.account().Load()
	}
}

// batchBytes is the size of what comes before the pages of a batch.
const batchBytes = int(unsafe.Sizeof(watchBatch{}))

// batch is what the kernel reports of a chip at a time.
type batch struct {
	watchBatch
	pages []byte
	// sources are pointers that name programs, by id from that of the first page on.
	sources []uint64
}

// decodeBatch reads a batch. The slices in it are b's, and to's.
func decodeBatch(b []byte, to *batch) error {
	if len(b) < batchBytes {
		return fmt.Errorf("a batch of %d bytes", len(b))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&to.watchBatch)), batchBytes), b)
	b = b[batchBytes:]
	n, room := int(to.Pages), int(to.Room)
	to.sources = to.sources[:0]
	if watchBatchKind(to.Kind) == watchBatchKindBATCH_NAME {
		if len(b) < n {
			return fmt.Errorf("a name of %d bytes in %d", n, len(b))
		}
		to.pages = b[:n]
		return nil
	}
	if n > room && room != 0 || len(b) < n*pages.PageBytes || len(b) < room*(pages.PageBytes+8) {
		return fmt.Errorf("%d pages in %d bytes, with room for %d", n, len(b), room)
	}
	to.pages = b[:n*pages.PageBytes]
	first := uint32(0)
	if n > 0 {
		first = binary.LittleEndian.Uint32(b[8:]) & 0xffff
	}
	for i := 0; i < room && uint32(i)+first < 1<<16; i++ {
		to.sources = append(to.sources, binary.LittleEndian.Uint64(b[room*pages.PageBytes+8*i:]))
	}
	return nil
}

func (s *Source) readWork(ctx context.Context) error {
	var record ringbuf.Record
	var to batch
	return s.read(ctx, &s.pageReading, &s.kernel.pages, s.workWait, func(from *ring) (int, error) { return s.readPages(from, &record, &to) })
}

// workWait is how long pages may wait in their ring.
func (s *Source) workWait(int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.accounts.processes {
		if p.work != nil && p.work.Reports() {
			return lookWork
		}
	}
	return pollAlone
}

// readPages enters batches until the ring has been empty, or as many as it can have
// had when the first was read.
func (s *Source) readPages(from recordReader, record *ringbuf.Record, to *batch) (n int, err error) {
	wanted := map[uint32]*process{} // by number in the kernel
	defer s.requestNames(wanted)
	boot, most := int64(0), int(s.kernel.Work.MaxEntries())/batchBytes
	defer func() {
		if n > 0 {
			s.kernel.nextPageTurn()
		}
	}()
	for {
		if n >= most {
			return n, os.ErrDeadlineExceeded
		}
		if err = from.ReadInto(record); err != nil {
			return n, err
		}
		if boot == 0 {
			boot = proc.BootTime()
		}
		s.mu.Lock()
		for more := true; more && err == nil; n++ {
			if p := s.enterBatch(record.RawSample, to, boot); p != nil {
				wanted[to.Tgid] = p
			}
			if more = record.Remaining != 0 && n%64 != 63; more { // others want the lock too
				err = from.ReadInto(record)
			}
		}
		s.mu.Unlock()
		if err != nil {
			return n, err
		}
	}
}

// enterBatch counts what a chip has reported, and returns its process. With mu.
func (s *Source) enterBatch(sample []byte, b *batch, boot int64) *process {
	if err := decodeBatch(sample, b); err != nil {
		s.log.Error("cannot read profiler pages", "err", err)
		return nil
	}
	at := boot + int64(b.Time)
	if p := s.accounts.exitedProcess(b.Pid, at); p != nil {
		s.accounts.followPrograms(p)
		p.addBatch(b, at)
		return nil
	}
	if s.isElsewhere(b.Pid) {
		return nil
	}
	p := s.accounts.process(b.Pid)
	if p.trouble.Kind != "" {
		return nil
	}
	s.accounts.followPrograms(p)
	p.addBatch(b, at)
	s.accounts.checkBlocks(p, at)
	return p
}

// addBatch counts a batch.
func (p *process) addBatch(b *batch, at int64) {
	switch watchBatchKind(b.Kind) {
	case watchBatchKindBATCH_NAME:
		p.account().Name(b.Ticks, string(b.pages))
	case watchBatchKindBATCH_RECORD:
		p.account().AddRecord(b.pages, at, b.Lost)
	default:
		loss := pages.Lossy
		if watchBatchKind(b.Kind) == watchBatchKindBATCH_LOSSLESS {
			loss = pages.Lossless
		}
		p.account().Add(&pages.Batch{
			Time: at, Chip: b.Chip, Ticks: math.Float64frombits(b.Ticks), Loss: loss, Lost: b.Lost,
			Pages: b.pages, Sources: b.sources,
		})
	}
}

// lookWork is how long pages may wait while a chip may report. The kernel's part
// wakes the reader when an eighth of the ring is full.
const lookWork = 250 * time.Millisecond

// requestNames asks the kernel's part for names that are not known yet: it reads them
// at the next hit, where reading never waits.
func (s *Source) requestNames(of map[uint32]*process) {
	if len(of) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for tgid, p := range of {
		if p.work == nil {
			continue
		}
		var names watchNames
		if n := copy(names.Pointer[:], p.work.Wanted(len(names.Pointer))); n > 0 {
			_ = s.kernel.Wanted.Put(tgid, names)
		}
	}
}

// sweepWork notes what the kernel knows of a process's pages, and takes the
// probes of pages out of one that hits them too often. With mu.
func (s *Source) sweepWork(p *process, row *watchProcess, now time.Time) {
	if row.Worked == 0 {
		return
	}
	p.account().Lost = max(p.account().Lost, row.PagesLost)
	rate := s.rate(rateKey{row.Pid, groupPages}, row.Worked, now)
	if rate <= s.o.Limit || p.fast[groupPages] {
		return
	}
	p.fast[groupPages] = true
	s.log.Warn("process runs programs too often; detached from it", "pid", row.Pid, "hits_per_second", int(rate), "limit", s.o.Limit)
	s.leave(row.Pid, groupPages)
}

// claimWork adds what the chips of a process reported. With mu.
func (s *Source) claimWork(set *claim.Set, p *process, host model.HostCause) {
	id, now := model.ProcessID{PID: p.PID, StartTicks: p.Start}, time.Now()
	why := s.deaf(p)
	if why == "" && p.work != nil {
		for _, number := range slices.Sorted(maps.Keys(p.work.Chips)) {
			chip, ok := p.chipNumbered(number)
			if !ok {
				why = model.WorkWhichChip
				continue
			}
			w := p.work.Chips[number].Claim(id, chip, p.work, now)
			if w.Queues == 1 && p.mayHaveChanged(chip) {
				w.Queues = 0
			}
			set.Work = append(set.Work, w)
		}
	}
	set.Listens = append(set.Listens, claim.Listens{Process: id, Why: why, Host: host})
}

// mayHaveChanged reports whether a process may have done something to a chip, such
// as making a second queue, that was not seen.
func (p *process) mayHaveChanged(chip uint64) bool {
	return p.Lost > 0 || p.Late && !slices.Contains(p.Seen, chip)
}

// deaf is why the programs of a process are not seen; empty: they are. With mu.
func (s *Source) deaf(p *process) model.WorkCause {
	if p.fast[groupPages] {
		return model.WorkTooFast
	}
	for _, of := range s.known[p.PID] {
		if l := s.libraries[of]; l != nil && !slices.ContainsFunc(l.probes, func(x probe) bool { return x.site.ofPages() }) {
			return model.WorkNoSymbols
		}
	}
	if p.Late && (p.work == nil || len(p.work.Chips) == 0) {
		return model.WorkSilent // its profiler may have gone live before
	}
	return ""
}

// chipNumbered is the chip that a process knows by a number. One that was opened
// before the process was watched is known where there is no other.
func (p *process) chipNumbered(number uint32) (id uint64, ok bool) {
	if id, ok = p.numbered[number]; ok {
		return id, true
	}
	if len(p.Seen) == 1 && len(p.numbered) == 0 && len(p.work.Chips) == 1 {
		return p.Seen[0], true
	}
	return 0, false
}
