package ledgerfile

import (
	"encoding/binary"
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
	memory []byte  // all of it; nil: the ledger is closed
	head   *header // the rest are parts of it
	chips  []chipRecord
	lists  []listRecord
	places []siteRecord
	texts  []byte
	blocks []blockRecord
	free   []uint32            // slots
	slots  map[blockKey]uint32 // where each block is
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
	r = &Reporter{slots: map[blockKey]uint32{}, tags: map[string]uint32{}, sites: map[siteKey]uint32{}}
	var head header
	end := uint64(4096)
	for i, capacity := range [numSections]int{reporterChips, reporterLists, reporterSites, 1, 1, reporterText, blocks} {
		head.Section[i] = section{Offset: end, Size: uint32(recordSize[i]), Capacity: uint32(capacity), Used: [numSections]uint32{secLists: 1, secSites: 1, secFrames: 1, secNodes: 1, secStrings: 4}[i]}
		end += (uint64(capacity)*uint64(recordSize[i]) + 4095) / 4096 * 4096
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
	r.head = &recordsIn[header](r.memory)[0]
	r.chips, r.lists = within[chipRecord](r.memory, &head.Section[secChips]), within[listRecord](r.memory, &head.Section[secLists])
	r.places, r.texts = within[siteRecord](r.memory, &head.Section[secSites]), within[byte](r.memory, &head.Section[secStrings])
	r.blocks = within[blockRecord](r.memory, &head.Section[secBlocks])
	r.begin(head)
	return r, nil
}

// within is all that a section of a ledger has room for.
func within[T any](memory []byte, s *section) []T {
	return recordsIn[T](memory[s.Offset:])[:s.Capacity]
}

// begin writes the header, with the identity of this process; the magic comes last.
func (r *Reporter) begin(h header) {
	h.Version, h.Header, h.PID, h.StartTicks = Version, uint32(firstHeader), int32(os.Getpid()), ownStart()
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) == nil {
		h.PIDNamespace = st.Ino
	}
	h.Clock = clock{time.Now().UnixNano(), monotonic()}
	copy(h.Run[:len(h.Run)-1], os.Getenv("TTMON_RUN"))
	copy(h.Comm[:len(h.Comm)-1], filepath.Base(os.Args[0]))
	*r.head = h
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&r.head.Magic)), recordsIn[uint64]([]byte(magic))[0])
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

// change makes a change that readers see whole or not at all.
func (r *Reporter) change(f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return os.ErrClosed
	}
	epoch := &r.head.Epoch // readers read it while we write
	atomic.StoreUint64(epoch, *epoch|1)
	defer func() { atomic.StoreUint64(epoch, (*epoch|1)+1) }()
	return f()
}

// alloc takes the next n records of a section.
func (r *Reporter) alloc(section int, n uint32) (first uint32, err error) {
	s := &r.head.Section[section]
	if first = s.Used; first+n > s.Capacity {
		r.head.Flags |= Full
		r.head.Lost++
		return 0, ErrFull
	}
	atomic.StoreUint32(&s.Used, first+n)
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
		if l.number, err = r.alloc(secLists, 1); err != nil {
			return err
		}
		x := &r.lists[l.number]
		*x = listRecord{State: Open, Pool: g.Pool, Own: 1, Group: l.number, Banks: g.Banks, Capacity: g.Capacity, Base: g.Base, Made: monotonic()}
		x.Chips.add(chip)
		return nil
	})
	return l, err
}

// chip is the number of a chip, which is new if it has to be.
func (r *Reporter) chip(g Geometry) (uint32, error) {
	for i := range r.chips[:r.head.Section[secChips].Used] {
		if r.chips[i].ID == g.Chip {
			return uint32(i), nil
		}
	}
	n, err := r.alloc(secChips, 1)
	if err == nil {
		r.chips[n] = chipRecord{ID: g.Chip, Logical: int32(g.Logical), Open: 1}
	}
	return n, err
}

func (r *Reporter) site(list uint32, tag string) (uint32, error) {
	tag = tag[:min(len(tag), 255)]
	text, ok := r.tags[tag]
	if !ok && tag != "" {
		at, err := r.alloc(secStrings, uint32(4+len(tag)))
		if err != nil {
			return 0, err
		}
		binary.LittleEndian.PutUint32(r.texts[at:], uint32(len(tag)))
		copy(r.texts[at+4:], tag)
		text = at
		r.tags[tag] = at
	}
	key := siteKey{list, text}
	if n, ok := r.sites[key]; ok {
		return n, nil
	}
	n, err := r.alloc(secSites, 1)
	if err != nil {
		return 0, err
	}
	r.places[n].List, r.places[n].Tag = list, text
	r.sites[key] = n
	return n, nil
}

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
		var slot uint32
		if n := len(r.free); n > 0 {
			slot, r.free = r.free[n-1], r.free[:n-1]
		} else if slot, err = r.alloc(secBlocks, 1); err != nil {
			return err
		}
		r.slots[key] = slot
		now := monotonic()
		r.writeBlock(slot, blockRecord{Address: address, Bytes: bytes, Asked: asked, Time: now, Site: site})
		r.count(l.number, site, bytes, true)
		if list := &r.lists[l.number]; list.Live.Bytes > list.Peak.Bytes {
			list.Peak, list.PeakTime, list.PeakCount = list.Live, now, list.PeakCount+1
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
		b := r.blocks[slot]
		delete(r.slots, key)
		r.writeBlock(slot, blockRecord{})
		r.free = append(r.free, slot)
		r.count(l.number, b.Site, b.Bytes, false)
		return nil
	})
}

// writeBlock changes a slot. Its sequence is odd meanwhile.
func (r *Reporter) writeBlock(slot uint32, b blockRecord) {
	to := &r.blocks[slot]
	before := to.Sequence | 1
	atomic.StoreUint32(&to.Sequence, before)
	b.Sequence = before
	*to = b
	atomic.StoreUint32(&to.Sequence, before+1)
}

// count keeps the sums of a list and a site; what the site held at the list's
// peak is noted before it changes.
func (r *Reporter) count(list, site uint32, bytes uint64, allocated bool) {
	l, s := &r.lists[list], &r.places[site]
	if s.PeakCount != l.PeakCount {
		s.Peak, s.PeakCount = s.Live, l.PeakCount
	}
	if !allocated {
		l.Live, s.Live = Sum{l.Live.Bytes - bytes, l.Live.Blocks - 1}, Sum{s.Live.Bytes - bytes, s.Live.Blocks - 1}
		return
	}
	for _, sum := range []*Sum{&l.Live, &s.Live, &l.Total, &s.Total} {
		sum.Bytes, sum.Blocks = sum.Bytes+bytes, sum.Blocks+1
	}
}

// Path is the ledger's file.
func (r *Reporter) Path() string { return r.file.Name() }

// Close ends the ledger and removes it, unless it is for a `ttmon run` to read.
func (r *Reporter) Close() error {
	err := r.change(func() error {
		r.head.Flags |= Ended
		return nil
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := r.head.Run[0] != 0
	err = errors.Join(r.work.close(), unix.Munmap(r.memory))
	r.memory = nil
	if !keep {
		err = errors.Join(err, os.Remove(r.file.Name()))
	}
	return errors.Join(err, r.file.Close())
}
