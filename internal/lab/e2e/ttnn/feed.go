package ttnn

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/lib/libtest"
)

// Feed stands for the chips of a job that report programs: a test writes their
// pages, and tt-metal's own real-time profiler receives them (testdata/ttnn/feed.c).
type Feed struct {
	Chips []*FeedChip
	dir   string
}

const (
	feedPages   = 1 << 16
	feedHeader  = 64
	pageBytes   = 64
	offTaken    = 8
	offTicks    = 16
	offHold     = 24
	offHeld     = 28
	pageSync    = 0xffffffff
	feedTimeout = 2 * time.Minute
)

// NewFeed builds the preload into dir and makes the pages of so many chips,
// whose clocks have so many ticks a nanosecond.
func NewFeed(dir string, chips int, ticksPerNS float64) (*Feed, error) {
	cc, err := libtest.Compiler()
	if err != nil {
		return nil, err
	}
	root, err := Repository()
	if err != nil {
		return nil, err
	}
	f := &Feed{dir: dir}
	out, err := exec.Command(cc, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
		filepath.Join(root, "testdata/ttnn/feed.c"), "-o", f.Library(), "-ldl", "-pthread").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("building the feed: %w\n%s", err, out)
	}
	for i := range chips {
		c, err := newFeedChip(filepath.Join(dir, strconv.Itoa(i)), ticksPerNS)
		if err != nil {
			return nil, err
		}
		f.Chips = append(f.Chips, c)
	}
	return f, nil
}

// Library is the path of the preload.
func (f *Feed) Library() string { return filepath.Join(f.dir, "feed.so") }

// Env is the environment of a job that is fed, with other libraries loaded
// before the feed's.
func (f *Feed) Env(before ...string) []string {
	preload := ""
	for _, path := range before {
		preload += path + " "
	}
	return []string{"TTMON_FEED=" + f.dir, "LD_PRELOAD=" + preload + f.Library()}
}

// FeedChip is one chip of a Feed.
type FeedChip struct {
	mem     []byte
	written uint64
	Clock   uint64 // device time, for Program
}

func newFeedChip(path string, ticksPerNS float64) (*FeedChip, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const size = feedHeader + feedPages*pageBytes
	if err := file.Truncate(size); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(mem[offTicks:], math.Float64bits(ticksPerNS))
	return &FeedChip{mem: mem, Clock: 1 << 33}, nil
}

func (c *FeedChip) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&c.mem[at])) }
func (c *FeedChip) half(at int) *uint32 { return (*uint32)(unsafe.Pointer(&c.mem[at])) }

// Hold lets the host wait in its next finish until it is called with false.
func (c *FeedChip) Hold(on bool) {
	v := uint32(0)
	if on {
		v = 1
	}
	atomic.StoreUint32(c.half(offHold), v)
}

// Held is how often the host has come to wait there.
func (c *FeedChip) Held() int { return int(atomic.LoadUint32(c.half(offHeld))) }

// Program is a program that begins a while after the last one and runs for a
// time, both in ticks.
func (c *FeedChip) Program(id uint32, after, runs uint64) {
	start := c.Clock + after
	c.Clock = start + runs
	c.Record(id, start, c.Clock)
}

// Record is a program from one tick to another, whatever else ran.
func (c *FeedChip) Record(id uint32, start, end uint64) {
	c.Page([8]uint32{uint32(start >> 32), uint32(start), id, 0, uint32(end >> 32), uint32(end), id, 0})
}

// Sync is a page that is no program: the chip's clock.
func (c *FeedChip) Sync() {
	c.Page([8]uint32{uint32(c.Clock >> 32), uint32(c.Clock), 7, pageSync})
}

// Page writes a page; it waits while too many have not been taken.
func (c *FeedChip) Page(words [8]uint32) {
	for c.written-c.Taken() >= feedPages {
		time.Sleep(100 * time.Microsecond)
	}
	at := feedHeader + int(c.written%feedPages)*pageBytes
	for i, w := range words {
		binary.LittleEndian.PutUint32(c.mem[at+4*i:], w)
	}
	c.written++
	atomic.StoreUint64(c.word(0), c.written)
}

// Written is how many pages were written.
func (c *FeedChip) Written() uint64 { return c.written }

// Taken is how many pages were taken.
func (c *FeedChip) Taken() uint64 { return atomic.LoadUint64(c.word(offTaken)) }

// Flush waits until all pages were taken.
func (c *FeedChip) Flush() error {
	for end := time.Now().Add(feedTimeout); c.Taken() != c.written; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d pages were taken", c.Taken(), c.written)
		}
	}
	return nil
}
