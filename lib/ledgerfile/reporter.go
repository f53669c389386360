package ledgerfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Geometry describes a pool of a Reporter's allocator; sizes are of one bank.
type Geometry struct {
	Chip     uint64 // UMD's chip_unique_id
	Logical  int
	Pool     Pool
	Banks    uint32
	Capacity uint64
	Base     uint64
}

// Reporter keeps the ledger of a Go program that has an allocator of device
// memory. It has room for a fixed number of blocks and knows tags but no
// stacks; libttmon, in C, has both without a limit. Safe for concurrent use.
//
// A process reads no ledger of its own while it has a Reporter: closing the
// file again would drop the lock by which others know that the process lives.
type Reporter struct {
	mu     sync.Mutex
	file   *os.File
	memory []byte
	start  [numSections]uint64
	room   int
	free   []int            // slots
	slots  map[blockKey]int // where each block is
	tags   map[string]uint32
	sites  map[siteKey]uint32
	work   *ReportedWork // nil: it reports none
}

type (
	blockKey struct {
		list    uint32
		address uint64
	}
	siteKey struct{ list, tag uint32 }
)

// The room for what a Reporter has few of.
const (
	reporterChips, reporterLists = 64, 64
	reporterSites, reporterText  = 4096, 64 << 10
)

// ErrFull means that there was no room for an event.
var ErrFull = errors.New("the ledger is full")

// NewReporter creates a ledger in dir (empty: /dev/shm) with room for so many
// live blocks at once.
func NewReporter(dir string, blocks int) (r *Reporter, err error) {
	if dir == "" {
		dir = "/dev/shm"
	}
	if blocks < 1 || blocks > int(maxRecords[secBlocks]) {
		return nil, fmt.Errorf("room for %d blocks: it is 1 to %d", blocks, maxRecords[secBlocks])
	}
	r = &Reporter{room: blocks, slots: map[blockKey]int{}, tags: map[string]uint32{}, sites: map[siteKey]uint32{}}
	capacity := [numSections]int{reporterChips, reporterLists, reporterSites, 1, 1, reporterText, blocks}
	end := uint64(4096)
	for i := range r.start {
		r.start[i] = end
		end += (uint64(capacity[i])*uint64(recordSize[i]) + 4095) / 4096 * 4096
	}
	name := filepath.Join(dir, fmt.Sprintf("%s%d-%016x", Prefix, os.Getpid(), rand.Uint64()))
	if r.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err = errors.Join(unix.FcntlFlock(r.file.Fd(), unix.F_SETLK, &lock), unix.Fallocate(int(r.file.Fd()), 0, 0, int64(end)))
	if err == nil {
		r.memory, err = unix.Mmap(int(r.file.Fd()), 0, int(end), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		os.Remove(name)
		r.file.Close()
		return nil, fmt.Errorf("creating a ledger: %w", err)
	}
	for i, n := range capacity {
		b := r.memory[offSections+i*sectionSize:]
		le.PutUint64(b, r.start[i])
		le.PutUint32(b[8:], recordSize[i])
		le.PutUint32(b[12:], uint32(n))
		le.PutUint32(b[16:], [numSections]uint32{secLists: 1, secSites: 1, secFrames: 1, secNodes: 1, secStrings: 4}[i])
	}
	r.header()
	return r, nil
}

// header writes the identity of this process; the magic comes last.
func (r *Reporter) header() {
	le.PutUint32(r.memory[offVersion:], Version)
	le.PutUint32(r.memory[offHeader:], headerSize)
	le.PutUint32(r.memory[offPID:], uint32(os.Getpid()))
	le.PutUint64(r.memory[offStartTicks:], ownStart())
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) == nil {
		le.PutUint64(r.memory[offNamespace:], st.Ino)
	}
	le.PutUint64(r.memory[offReal:], uint64(time.Now().UnixNano()))
	le.PutUint64(r.memory[offMonotonic:], uint64(monotonic()))
	copy(r.memory[offRun:offRun+runSize-1], os.Getenv("TTMON_RUN"))
	copy(r.memory[offComm:offComm+commSize-1], filepath.Base(os.Args[0]))
	r.word64(0).Store(le.Uint64([]byte(magic)))
}

func ownStart() uint64 {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 20 {
		return 0
	}
	n, _ := strconv.ParseUint(fields[19], 10, 64)
	return n
}

func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// word64 and word32 are words that readers read while we write.
func (r *Reporter) word64(at uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.memory[at]))
}

func (r *Reporter) word32(at uint64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&r.memory[at]))
}

// change makes a change that readers see whole or not at all.
func (r *Reporter) change(f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return os.ErrClosed
	}
	epoch := r.word64(offEpoch)
	epoch.Store(epoch.Load() | 1)
	defer func() { epoch.Store((epoch.Load() | 1) + 1) }()
	return f()
}

func (r *Reporter) record(section int, n uint32) []byte {
	at := r.start[section] + uint64(n)*uint64(recordSize[section])
	return r.memory[at : at+uint64(recordSize[section])]
}

// allocRecords allocates the next n records of a section.
func (r *Reporter) allocRecords(section int, n uint32) (uint32, error) {
	b := uint64(offSections + section*sectionSize)
	used := r.word32(b + 16)
	first := used.Load()
	if first+n > le.Uint32(r.memory[b+12:]) {
		le.PutUint32(r.memory[offFlags:], le.Uint32(r.memory[offFlags:])|uint32(Full))
		r.word64(offLost).Add(1)
		return 0, ErrFull
	}
	used.Store(first + n)
	return first, nil
}

// ReportedList is a pool of a Reporter.
type ReportedList struct {
	r      *Reporter
	number uint32
}

// List adds a pool.
func (r *Reporter) List(g Geometry) (*ReportedList, error) {
	l := &ReportedList{r: r}
	err := r.change(func() (err error) {
		chip, err := r.chip(g)
		if err != nil {
			return err
		}
		if l.number, err = r.allocRecords(secLists, 1); err != nil {
			return err
		}
		b := r.record(secLists, l.number)
		b[listPool], b[listOwn], b[listState] = byte(g.Pool), 1, byte(Open)
		le.PutUint32(b[listGroup:], l.number)
		le.PutUint32(b[listBanks:], g.Banks)
		le.PutUint64(b[listCapacity:], g.Capacity)
		le.PutUint64(b[listBase:], g.Base)
		b[listChips+chip/8] |= 1 << (chip % 8)
		le.PutUint64(b[listMade:], uint64(monotonic()))
		return nil
	})
	return l, err
}

// chip is the number of a chip, which is new if it has to be.
func (r *Reporter) chip(g Geometry) (uint32, error) {
	used := r.word32(offSections + secChips*sectionSize + 16).Load()
	for i := range used {
		if le.Uint64(r.record(secChips, i)) == g.Chip {
			return i, nil
		}
	}
	n, err := r.allocRecords(secChips, 1)
	if err != nil {
		return 0, err
	}
	b := r.record(secChips, n)
	le.PutUint64(b, g.Chip)
	le.PutUint32(b[8:], uint32(int32(g.Logical)))
	le.PutUint32(b[12:], 1)
	return n, nil
}

func (r *Reporter) site(list uint32, tag string) (uint32, error) {
	tag = tag[:min(len(tag), 255)]
	text, ok := r.tags[tag]
	if !ok && tag != "" {
		at, err := r.allocRecords(secStrings, uint32(4+len(tag)))
		if err != nil {
			return 0, err
		}
		le.PutUint32(r.memory[r.start[secStrings]+uint64(at):], uint32(len(tag)))
		copy(r.memory[r.start[secStrings]+uint64(at)+4:], tag)
		text = at
		r.tags[tag] = at
	}
	key := siteKey{list, text}
	if n, ok := r.sites[key]; ok {
		return n, nil
	}
	n, err := r.allocRecords(secSites, 1)
	if err != nil {
		return 0, err
	}
	b := r.record(secSites, n)
	le.PutUint32(b[siteList:], list)
	le.PutUint32(b[siteTag:], text)
	r.sites[key] = n
	return n, nil
}

func add(b []byte, n int64) { le.PutUint64(b, le.Uint64(b)+uint64(n)) }

// Allocated records a block: its address and bytes in each bank, and its tag.
func (l *ReportedList) Allocated(address, bytes uint64, tag string) error {
	return l.AllocatedFor(address, bytes, 0, tag)
}

// AllocatedFor records a block and how many bytes were requested, over all
// banks of one chip.
func (l *ReportedList) AllocatedFor(address, bytes, asked uint64, tag string) error {
	r := l.r
	return r.change(func() error {
		key := blockKey{l.number, address}
		if _, ok := r.slots[key]; ok {
			return fmt.Errorf("a block at %#x is there already", address)
		}
		site, err := r.site(l.number, tag)
		if err != nil {
			return err
		}
		var slot int
		if n := len(r.free); n > 0 {
			slot, r.free = r.free[n-1], r.free[:n-1]
		} else {
			n, err := r.allocRecords(secBlocks, 1)
			if err != nil {
				return err
			}
			slot = int(n)
		}
		r.slots[key] = slot
		now := monotonic()
		r.writeBlock(slot, Block{Address: address, Bytes: bytes, Asked: asked, Site: int(site)}, now)
		r.count(l.number, site, int64(bytes), 1)
		list := r.record(secLists, l.number)
		if live := le.Uint64(list[listLiveBytes:]); live > le.Uint64(list[listPeakBytes:]) {
			le.PutUint64(list[listPeakBytes:], live)
			le.PutUint64(list[listPeakBlocks:], le.Uint64(list[listLiveBlocks:]))
			le.PutUint64(list[listPeakTime:], uint64(now))
			le.PutUint32(list[listPeakCount:], le.Uint32(list[listPeakCount:])+1)
		}
		return nil
	})
}

// Freed records that the block at an address was freed.
func (l *ReportedList) Freed(address uint64) error {
	r := l.r
	return r.change(func() error {
		key := blockKey{l.number, address}
		slot, ok := r.slots[key]
		if !ok {
			return fmt.Errorf("no block at %#x", address)
		}
		b := r.record(secBlocks, uint32(slot))
		site, bytes := le.Uint32(b[blockSite:]), le.Uint64(b[blockBytes:])
		delete(r.slots, key)
		r.writeBlock(slot, Block{}, 0)
		r.free = append(r.free, slot)
		r.count(l.number, site, -int64(bytes), -1)
		return nil
	})
}

func (r *Reporter) writeBlock(slot int, b Block, now int64) {
	to := r.record(secBlocks, uint32(slot))
	sequence := r.word32(r.start[secBlocks] + uint64(slot)*uint64(recordSize[secBlocks]) + blockSequence)
	sequence.Store(sequence.Load() | 1)
	le.PutUint64(to[blockAddress:], b.Address)
	le.PutUint64(to[blockBytes:], b.Bytes)
	le.PutUint64(to[blockAsked:], b.Asked)
	le.PutUint64(to[blockTime:], uint64(now))
	le.PutUint32(to[blockSite:], uint32(b.Site))
	sequence.Store((sequence.Load() | 1) + 1)
}

// count keeps the sums of a list and a site; what the site held at the list's
// peak is noted before it changes.
func (r *Reporter) count(list, site uint32, bytes, blocks int64) {
	l, s := r.record(secLists, list), r.record(secSites, site)
	if n := le.Uint32(l[listPeakCount:]); le.Uint32(s[sitePeakCount:]) != n {
		le.PutUint64(s[sitePeakBytes:], le.Uint64(s[siteLiveBytes:]))
		le.PutUint64(s[sitePeakBlocks:], le.Uint64(s[siteLiveBlocks:]))
		le.PutUint32(s[sitePeakCount:], n)
	}
	add(l[listLiveBytes:], bytes)
	add(l[listLiveBlocks:], blocks)
	add(s[siteLiveBytes:], bytes)
	add(s[siteLiveBlocks:], blocks)
	if blocks > 0 {
		add(l[listTotalBytes:], bytes)
		add(l[listTotalBlocks:], blocks)
		add(s[siteTotalBytes:], bytes)
		add(s[siteTotalBlocks:], blocks)
	}
}

// Path is the ledger's file.
func (r *Reporter) Path() string { return r.file.Name() }

// Close ends the ledger and removes it, unless it is for a `ttmon run` to read.
func (r *Reporter) Close() error {
	err := r.change(func() error {
		le.PutUint32(r.memory[offFlags:], le.Uint32(r.memory[offFlags:])|uint32(Ended))
		return nil
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := r.memory[offRun] != 0
	err = errors.Join(r.work.close(), unix.Munmap(r.memory))
	r.memory = nil
	if !keep {
		err = errors.Join(err, os.Remove(r.file.Name()))
	}
	return errors.Join(err, r.file.Close())
}
