package ledgerfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/lib/libtest"
)

// sample is a small ledger as the library writes it, without the holes of its
// file: the sections are moved together.
func sample(t testing.TB) []byte {
	t.Helper()
	d, dir := startDriver(t)
	tell(t, d, "list 7 0", "list 8 1", "push tag", "alloc 1 4096", "pop", "alloc 1 8192", "stacks 2", "alloc 2 4096", "free 1 8192", "close 2",
		"metal 0 "+filepath.Join(dir, "libtt_metal.so"), "mopen 0 9", "mtake 0 1000", "mtake 0 2000", "mtake 0 9000000", "mtake 0 8000000")
	path, err := d.Do("path")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := append([]byte(nil), image[:sizeOfHeader]...)
	take := func(at uintptr) {
		b := out[at : at+unsafe.Sizeof(section{})]
		s := recordsIn[section](slices.Clone(b))[0]
		from := s.Offset
		s.Offset = uint64(len(out))
		copy(b, bytesOf([]section{s}))
		out = append(out, image[from:from+s.end()-s.Offset]...)
	}
	var h header
	for i := range numSections {
		take(sectionAt(i))
	}
	for i := range h.Failure {
		take(unsafe.Offsetof(h.Failure) + uintptr(i)*unsafe.Sizeof(section{}))
	}
	return out
}

// sectionAt is where a header describes a section.
func sectionAt(i int) uintptr {
	return unsafe.Offsetof(header{}.Section) + uintptr(i)*unsafe.Sizeof(section{})
}

// startDriver starts the program that obeys.
func startDriver(t testing.TB) (d *libtest.Driver, dir string) {
	t.Helper()
	if _, err := libtest.Compiler(); err != nil {
		t.Skip(err)
	}
	dir = t.TempDir()
	if err := libtest.Build(dir, "static"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "driver"))
	cmd.Env = append(os.Environ(), "TTMON_DIR="+dir)
	d, err := libtest.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	return d, dir
}

func tell(t testing.TB, d *libtest.Driver, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if _, err := d.Do("%s", line); err != nil {
			t.Fatal(err)
		}
	}
}

// memoryFile is a file of these bytes.
func memoryFile(t testing.TB, b []byte) int {
	t.Helper()
	fd, err := unix.MemfdCreate("ledger", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Pwrite(fd, b, 0); err != nil && len(b) > 0 {
		t.Fatal(err)
	}
	return fd
}

// FuzzRead feeds damaged ledgers to the reader. Whatever it makes of them holds
// together: numbers lead somewhere, sums of what is cut fit the blocks.
func FuzzRead(f *testing.F) {
	good := sample(f)
	f.Add(good)
	f.Add(good[:firstHeader])
	f.Add(good[:len(good)-1])
	f.Add([]byte(magic))
	odd := append([]byte(nil), good...)
	odd[unsafe.Offsetof(header{}.Epoch)] |= 1
	f.Add(odd)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		fd := memoryFile(t, b)
		defer unix.Close(fd)
		_, _, _, _ = new(Reader).Events(fd, 0, nil)
		if w, err := new(WorkReader).Read(fd); err == nil && w != nil && len(w.Chips) > chipsPerLedger {
			t.Errorf("%d chips", len(w.Chips))
		}
		if l, err := new(Reader).Places(fd); err == nil {
			_ = l.Stack(1)
			_ = l.Text(4)
		}
		l, err := new(Reader).Read(fd)
		if err != nil {
			if l != nil {
				t.Error("an error and a ledger")
			}
			return
		}
		for _, x := range l.Lists {
			for _, c := range x.Chips {
				_ = l.Chips[c]
			}
		}
		sums := make([]Sum, len(l.Lists))
		for _, x := range l.Blocks {
			site := l.Sites[x.Site]
			if l.Lists[site.List].State != Open {
				t.Errorf("a block of list %d, which is not open", site.List)
			}
			sums[site.List].Bytes += x.Bytes
			sums[site.List].Blocks++
		}
		for i, x := range l.Lists {
			if (l.Cut || l.Moving) && x.Live != sums[i] {
				t.Errorf("list %d: %+v, blocks %+v", i, x.Live, sums[i])
			}
		}
		failed := 0
		for i := range l.Failures {
			f := &l.Failures[i]
			for _, c := range f.Chips {
				_ = l.Chips[c]
			}
			for _, x := range f.Lists {
				failed += len(x.Blocks)
			}
			_ = l.Stack(f.Node)
		}
		if failed > len(b)/int(unsafe.Sizeof(failedBlockRecord{})) {
			t.Errorf("%d blocks of failures in %d bytes", failed, len(b))
		}
		for _, s := range l.Sites {
			if n := len(l.Stack(s.Node)); n > maxDepth {
				t.Errorf("a stack of %d frames", n)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	hermetic.Long(t)
	good := sample(t)
	if l, err := new(Reader).Read(memoryFile(t, good)); err != nil || len(l.Blocks) != 3 || l.Lists[1].Live.Blocks != 1 {
		t.Fatalf("the sample: %+v, %v", l, err)
	}
	damage := func(at uintptr, v byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = v
		return b
	}
	var version *VersionError
	for name, c := range map[string]struct {
		image []byte
		want  func(error) bool
	}{
		"empty":        {nil, func(err error) bool { return errors.Is(err, ErrNotReady) }},
		"no magic yet": {make([]byte, 4096), func(err error) bool { return errors.Is(err, ErrNotReady) }},
		"other magic":  {damage(0, 'x'), func(err error) bool { return errors.Is(err, ErrDamaged) }},
		"version 2":    {damage(unsafe.Offsetof(header{}.Version), 2), func(err error) bool { return errors.As(err, &version) && version.Version == 2 }},
		"record size":  {damage(sectionAt(0)+8, 17), func(err error) bool { return errors.Is(err, ErrDamaged) }},
		"too many":     {damage(sectionAt(0)+19, 0xff), func(err error) bool { return errors.Is(err, ErrDamaged) }},
		"cut off":      {good[:len(good)-10], func(err error) bool { return errors.Is(err, ErrDamaged) }},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := new(Reader).Read(memoryFile(t, c.image)); err == nil || !c.want(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// FuzzLargeLedgers feeds ledgers of the sizes that a user can make: what a file
// claims to have is in it, as zeros or as the same bytes again and again. The
// copy takes no more memory than it says, and no more than it may.
func FuzzLargeLedgers(f *testing.F) {
	f.Add(uint32(256), uint32(16), uint32(100), uint32(10), uint32(10), uint32(1000), uint32(100), []byte{1, 0, 0, 0}, uint32(0))
	f.Add(uint32(1), uint32(2), uint32(1<<16), uint32(0), uint32(0), uint32(4<<20), uint32(1), []byte{0, 16, 0, 0}, uint32(0))
	f.Add(uint32(1), uint32(4096), uint32(1<<16), uint32(1<<16), uint32(1<<18), uint32(4<<20), uint32(1<<16), []byte{1, 1, 0, 0}, uint32(1<<20))
	f.Fuzz(func(t *testing.T, chips, lists, sites, frames, nodes, texts, blocks uint32, fill []byte, limit uint32) {
		used := [numSections]uint32{chips, lists, sites, frames, nodes, texts, blocks % (1 << 18)}
		h := header{Magic: [8]byte([]byte(magic)), Version: Version, Header: uint32(firstHeader)}
		fd := memoryFile(t, nil)
		defer unix.Close(fd)
		at := uint64(firstHeader)
		for i := range used {
			used[i] %= maxRecords[i] + 2 // one too many, too
			h.Section[i] = section{Offset: at, Size: uint32(recordSize[i]), Used: used[i]}
			size := h.Section[i].end() - at
			if len(fill) > 0 && i != secBlocks {
				data := bytes.Repeat(fill, int(min(size, 1<<20))/len(fill))
				if _, err := unix.Pwrite(fd, data, int64(at)); err != nil {
					t.Fatal(err)
				}
			}
			at += size
		}
		if _, err := unix.Pwrite(fd, bytesOf([]header{h})[:firstHeader], 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(fd, int64(at)); err != nil {
			t.Fatal(err)
		}
		r := &Reader{MaxMemory: uint64(limit)}
		l, err := r.Read(fd)
		if err != nil {
			return
		}
		if limit > 0 && l.Memory > uint64(limit) {
			t.Errorf("a copy of %d bytes, and it may have %d", l.Memory, limit)
		}
		tags := 0
		for i := range l.Sites {
			tags += len(l.Sites[i].Tag)
		}
		if tags > maxTags {
			t.Errorf("%d bytes of tags", tags)
		}
		for _, b := range l.Blocks {
			_ = l.Stack(l.Sites[b.Site].Node)
		}
	})
}

// TestTagsAreNotCopied: tags that lie over each other take the memory of the
// texts, once.
func TestTagsAreNotCopied(t *testing.T) {
	const sites = 1 << 16
	data := sections{lists: make([]listRecord, 2), sites: make([]siteRecord, sites), texts: make([]byte, 4<<20)}
	data.lists[1].State = Open
	for i := 1; i < sites; i++ {
		data.sites[i].List, data.sites[i].Tag = 1, uint32(4*i)
	}
	lengths := recordsIn[uint32](data.texts)
	for i := range lengths {
		lengths[i] = 1 << 12
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := decode(&header{}, &data)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("%d bytes for %d sites", n, len(l.Sites))
	}
	if len(l.Sites[1].Tag) != 1<<12 || l.Flags&NoSites == 0 || l.Sites[sites-1].Tag != "" {
		t.Errorf("the first tag has %d bytes, the last %d; flags %v", len(l.Sites[1].Tag), len(l.Sites[sites-1].Tag), l.Flags)
	}
}

// TestFailures: the ledger keeps a request that failed, with the allocator as it
// was, and counts those of the same list and stack.
func TestFailures(t *testing.T) {
	hermetic.Long(t)
	l, err := new(Reader).Read(memoryFile(t, sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Failures) != 1 {
		t.Fatalf("%d failures: %+v", len(l.Failures), l.Failures)
	}
	f := &l.Failures[0]
	if f.Kind != NoRoom || f.Count != 2 || f.Bytes != 1000000 || f.Asked != 8000000 || !f.BottomUp || f.Missed != 0 || f.PageKnown || f.ShardsKnown {
		t.Errorf("the request: %+v", f)
	}
	if len(f.Chips) != 1 || l.Chips[f.Chips[0]].ID != 9 {
		t.Errorf("chips %v of %v", f.Chips, l.Chips)
	}
	if f.Time.IsZero() || f.First.After(f.Last) || f.Time != f.Last {
		t.Errorf("times %v, %v, %v", f.First, f.Last, f.Time)
	}
	if len(f.Lists) != 1 || len(f.Lists[0].Blocks) != 2 {
		t.Fatalf("lists %+v", f.Lists)
	}
	for _, b := range f.Lists[0].Blocks {
		first := b.Address == 4096 && b.Bytes == 128 && b.Asked == 1000
		second := b.Address == 69632 && b.Bytes == 256 && b.Asked == 2000
		if !first && !second || b.Born.IsZero() {
			t.Errorf("a block: %+v", b)
		}
	}
}

// TestFailuresStayApart: a request that fails on another device or for another reason
// has a record of its own, also while a program fails so often that there is no time
// to copy what its allocators hold.
func TestFailuresStayApart(t *testing.T) {
	hermetic.Long(t)
	d, dir := startDriver(t)
	tell(t, d, "metal 0 "+filepath.Join(dir, "libtt_metal.so"), "mopen 0 9")
	for range 1000 {
		tell(t, d, "mtake 0 1000")
	}
	const noHole, tooLarge, storm, others = 9000000, 9000000000, 5000, 40
	for range storm {
		tell(t, d, fmt.Sprint("mtake 0 ", noHole))
	}
	for i := range others {
		tell(t, d, fmt.Sprint("mopen 0 ", 100+i), "mtake 0 1000", fmt.Sprint("mtake 0 ", noHole))
	}
	tell(t, d, fmt.Sprint("mtake 0 ", tooLarge))
	path, err := d.Do("path")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := new(Reader).Read(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	type of struct{ chip, bytes uint64 }
	count := map[of]uint64{}
	for _, x := range l.Failures {
		if len(x.Chips) != 1 {
			t.Fatalf("%+v", x)
		}
		count[of{l.Chips[x.Chips[0]].ID, x.Asked}] += x.Count
		if len(x.Lists[0].Blocks)+int(x.Missed) != int(x.Lists[0].Live.Blocks) {
			t.Errorf("%d blocks and %d missed of %d", len(x.Lists[0].Blocks), x.Missed, x.Lists[0].Live.Blocks)
		}
	}
	want := map[of]uint64{{9, noHole}: storm, {100 + others - 1, tooLarge}: 1}
	for i := range uint64(others) {
		want[of{100 + i, noHole}] = 1
	}
	if !maps.Equal(count, want) {
		t.Errorf("%v instead of %v", count, want)
	}
}
