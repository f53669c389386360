package uprobe

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/source/metalabi"
)

// image builds a small library that has all functions, as the dynamic linker
// sees one: no sections. Everything is in one segment at address 0x1000.
type image struct {
	names   []string
	symbols uint32 // in the hash table; 0: those there are
	buckets uint32 // 0: 1
	strings uint64 // bytes of names in the dynamic segment; 0: those there are
	segment uint64 // bytes of the segment; 0: those there are
	old     bool   // the hash table of old linkers
}

func allNames() (names []string) {
	for _, s := range symbols {
		names = append(names, s.prefix+"v")
	}
	return names
}

// probed is how many functions get a probe.
func probed() (n int) {
	for _, s := range symbols {
		// Functions of images have no size: where those that wait end is not known.
		if s.need != metalabi.Called && s.site != hostFinish && s.site != hostEvent {
			n++
		}
	}
	return n + 1 // the constructor of a queue has two
}

// inFake is how many of them testdata/fake has: all of the allocator, of work the
// one that takes pages, and a queue: its beginning and end, a call that enqueues,
// and a wait and its end.
func inFake() (n int) {
	for _, s := range symbols {
		if s.need != metalabi.Called && (s.site < workOn || s.site == atPages || s.site == traceRefused) {
			n++
		}
	}
	return n + 6
}

// prefixOf is the beginning of a function's mangled name.
func prefixOf(name string) string {
	i := slices.IndexFunc(metalabi.Functions, func(f metalabi.Function) bool { return f.Name == name })
	return metalabi.Functions[i].Prefix
}

// sizeCode is Buffer::size: a value at 8 behind a pointer at 0x10.
var sizeCode = map[string]string{
	"amd64": "\x48\x8b\x47\x10\x48\x8b\x40\x08\xc3",
	"arm64": "\x08\x08\x40\xf9\x00\x05\x40\xf9\xc0\x03\x5f\xd6",
}[runtime.GOARCH]

const (
	imageAt   = 0x1000
	imageCode = 0x200 // where the code is, 16 bytes for each function
)

func (m image) build() []byte {
	le := binary.LittleEndian
	dynstr := []byte{0}
	dynsym := make([]byte, symbolBytes)
	for i, name := range m.names {
		dynsym = le.AppendUint32(dynsym, uint32(len(dynstr)))
		dynsym = append(dynsym, byte(elf.STB_GLOBAL)<<4|byte(elf.STT_FUNC), 0, 1, 0)
		dynsym = le.AppendUint64(dynsym, imageAt+imageCode+uint64(i)*16)
		dynsym = le.AppendUint64(dynsym, 16)
		dynstr = append(append(dynstr, name...), 0)
	}
	count := or(m.symbols, uint32(len(m.names)+1))
	var hash []byte
	if m.old {
		hash = le.AppendUint32(le.AppendUint32(nil, 1), count)
	} else {
		for _, word := range []uint32{or(m.buckets, 1), 1, 1, 0, 0, 0, 1} { // buckets, first symbol, bloom words, shift; bloom; bucket
			hash = le.AppendUint32(hash, word)
		}
		for i := uint32(1); i < count && i < 1<<16; i++ {
			hash = le.AppendUint32(hash, b2u(i == count-1))
		}
	}
	at := uint64(imageCode + 16*len(m.names))
	b := make([]byte, at)
	place := func(data []byte) (address uint64) {
		address = imageAt + uint64(len(b))
		b = append(b, data...)
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
		return address
	}
	tag := elf.DT_GNU_HASH
	if m.old {
		tag = elf.DT_HASH
	}
	var dynamic []byte
	for _, d := range []struct {
		tag   elf.DynTag
		value uint64
	}{
		{elf.DT_SYMTAB, place(dynsym)},
		{tag, place(hash)},
		{elf.DT_STRSZ, or(m.strings, uint64(len(dynstr)))},
		{elf.DT_STRTAB, place(dynstr)}, // last: it may be said to be longer than it is
		{elf.DT_NULL, 0},
	} {
		dynamic = le.AppendUint64(le.AppendUint64(dynamic, uint64(d.tag)), d.value)
	}
	dynamicAt := place(dynamic)
	copy(b, elf.ELFMAG)
	b[4], b[5], b[6] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1
	le.PutUint16(b[16:], uint16(elf.ET_DYN))
	le.PutUint16(b[18:], uint16(machine))
	le.PutUint64(b[32:], headerBytes)
	le.PutUint16(b[54:], segmentBytes)
	le.PutUint16(b[56:], 2)
	header := func(n int, kind elf.ProgType, offset, bytes uint64) {
		p := b[headerBytes+n*segmentBytes:]
		le.PutUint32(p, uint32(kind))
		le.PutUint32(p[4:], uint32(elf.PF_R|elf.PF_X))
		le.PutUint64(p[8:], offset)
		le.PutUint64(p[16:], imageAt+offset)
		le.PutUint64(p[32:], bytes)
	}
	header(0, elf.PT_LOAD, 0, or(m.segment, uint64(len(b))))
	header(1, elf.PT_DYNAMIC, dynamicAt-imageAt, uint64(len(dynamic)))
	for i, name := range m.names {
		b[imageCode+16*i] = 0x55 // push
		if strings.HasPrefix(name, prefixOf("buffer_size")) {
			copy(b[imageCode+16*i:], sizeCode)
		}
	}
	return b
}

func or[T uint32 | uint64](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func TestFindProbesOfImage(t *testing.T) {
	for name, m := range map[string]image{
		"gnu hash":   {names: allNames()},
		"old hash":   {names: allNames(), old: true},
		"much else":  {names: append(allNames(), strings.Split(strings.Repeat("_ZN2tt8tt_metal9allocator5otherEv,", 40_000), ",")...)},
		"long names": {names: append([]string{strings.Repeat("x", pieceBytes-100), strings.Repeat("y", 2*pieceBytes)}, allNames()...)},
	} {
		t.Run(name, func(t *testing.T) {
			probes, err := findProbes(bytes.NewReader(m.build()))
			if err != nil || len(probes) != probed() {
				t.Errorf("%d probes, %v", len(probes), err)
			}
			if i := slices.IndexFunc(probes, func(p probe) bool { return p.site == atBuffer }); i < 0 || probes[i].size != (field{0x10, 8}) {
				t.Errorf("the size of buffers: %+v", probes)
			}
		})
	}
	without := func(name string) image {
		return image{names: slices.DeleteFunc(allNames(), func(s string) bool { return strings.HasPrefix(s, name) })}
	}
	if probes, err := findProbes(bytes.NewReader(without(prefixOf("cb_track")).build())); err != nil || len(probes) != probed()-1 {
		t.Errorf("without an optional one: %d probes, %v", len(probes), err)
	}
	if probes, err := findProbes(bytes.NewReader(without(prefixOf("buffer_size")).build())); err != nil || len(probes) != probed()-1 {
		t.Errorf("a library that does not say where buffers have their size: %d probes, %v", len(probes), err)
	}
	var missing *symbolError
	if _, err := findProbes(bytes.NewReader(image{names: allNames()[:5]}.build())); !errors.As(err, &missing) {
		t.Errorf("without required ones: %v", err)
	}
	if _, err := findProbes(bytes.NewReader(image{names: append(allNames(), symbols[0].prefix+"x")}.build())); err == nil {
		t.Error("two functions for one probe")
	}
}

// sparse is a file that is longer than its data, as ftruncate makes one.
type sparse struct {
	data []byte
	size int64
	read int64
}

func (s *sparse) ReadAt(b []byte, at int64) (int, error) {
	if at >= s.size {
		return 0, io.EOF
	}
	clear(b)
	n := int(min(int64(len(b)), s.size-at))
	if at < int64(len(s.data)) {
		copy(b, s.data[at:])
	}
	s.read += int64(n)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// TestHostileLibraries: whatever a file claims, no more than the limits is read
// of it, and next to nothing kept.
func TestHostileLibraries(t *testing.T) {
	const huge = 1 << 40
	all := allNames()
	for name, c := range map[string]struct {
		image  image
		damage func(b []byte)
	}{
		"a sparse table of names":      {image: image{names: all, strings: maxNameBytes, segment: huge}},
		"more names than are read":     {image: image{names: all, strings: huge, segment: huge}},
		"a sparse chain":               {image: image{names: all, symbols: math.MaxUint32, segment: huge}},
		"absurd buckets":               {image: image{names: all, buckets: math.MaxUint32, segment: huge}},
		"as many buckets as are read":  {image: image{names: all, buckets: maxBuckets, segment: huge}},
		"absurd symbols":               {image: image{names: all, symbols: math.MaxUint32, segment: huge, old: true}},
		"as many symbols as are read":  {image: image{names: all, symbols: maxSymbols, segment: huge, old: true}},
		"nothing but wanted names":     {image: image{names: []string{strings.Repeat(symbols[0].prefix, 200_000)}}},
		"wanted names again and again": {image: image{names: strings.Split(strings.Repeat(symbols[0].prefix+",", 50_000), ",")}},
		"a segment that wraps": {image: image{names: all}, damage: func(b []byte) {
			binary.LittleEndian.PutUint64(b[headerBytes+32:], math.MaxUint64-8)
		}},
		"absurd segments": {image: image{names: all}, damage: func(b []byte) {
			binary.LittleEndian.PutUint16(b[56:], math.MaxUint16)
		}},
		"an absurd dynamic segment": {image: image{names: all}, damage: func(b []byte) {
			binary.LittleEndian.PutUint64(b[headerBytes+segmentBytes+32:], 1<<32)
		}},
		"absurd sections": {image: image{names: all}, damage: func(b []byte) {
			binary.LittleEndian.PutUint64(b[40:], 64)
			binary.LittleEndian.PutUint16(b[58:], 64)
			binary.LittleEndian.PutUint16(b[60:], math.MaxUint16)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.image.build()
			if c.damage != nil {
				c.damage(b)
			}
			f := &sparse{data: b, size: huge}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := findProbes(f)
			runtime.ReadMemStats(&after)
			t.Logf("%d KiB read, %d KiB allocated: %v", f.read>>10, (after.TotalAlloc-before.TotalAlloc)>>10, err)
			if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
				t.Errorf("%d bytes allocated", n)
			}
			if f.read > maxNameBytes+maxSymbols*symbolBytes+maxBuckets*4+8<<20 {
				t.Errorf("%d bytes read", f.read)
			}
		})
	}
}

// TestReleases: every release that tests run has the functions that the table
// says it has, for uprobe and for libttmon, where Go's own reader finds them.
func TestReleases(t *testing.T) {
	for _, release := range metalabi.Releases {
		t.Run(release.Version, func(t *testing.T) {
			path := ttnn.Library(t, release.Version)
			compareELF(t, path)
			there := functionsOf(t, path)
			for _, f := range metalabi.Followed() {
				has := slices.ContainsFunc(there, func(s elf.Symbol) bool {
					return f.Library != metalabi.Unused && s.Name == f.Symbol() || f.Probe != metalabi.Unused && strings.HasPrefix(s.Name, f.Prefix)
				})
				if lacks := slices.Contains(release.Lacks, f.Name); has == lacks {
					t.Errorf("%s (%s): it is there: %v; metalabi.Releases says otherwise", f.Name, f.Symbol(), has)
				}
			}
		})
	}
}

// functionsOf lists the functions that a library offers.
func functionsOf(t *testing.T, path string) []elf.Symbol {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(s elf.Symbol) bool { return s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC })
}

// TestSites: every function that is probed has a kind of events, and every kind
// of site a function.
func TestSites(t *testing.T) {
	seen := map[kind]bool{}
	for _, s := range symbols {
		if s.need == metalabi.Called {
			continue
		}
		if s.site == 0 || seen[s.site] {
			t.Errorf("%s: kind %d", s.prefix, s.site)
		}
		seen[s.site] = true
	}
	const hosts = int(hostQueueGone-hostEnqueue+1) - 1 // the constructor of a queue is a site of its own
	if want := int(numSites) - 1 + hosts; len(seen) != want || len(sites) != len(seen) {
		t.Errorf("%d sites of %d, %d names", len(seen), want, len(sites))
	}
}

func compareELF(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	theirs, err := elf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	list, err := theirs.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := openELF(f)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := ours.count(); err != nil || n != uint64(len(list)+1) { // theirs leaves out the first, which is none
		t.Errorf("%d symbols, %v; want %d", n, err, len(list)+1)
	}
	want := map[symbol]int{}
	for i, s := range list {
		if s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		for _, w := range symbols {
			if strings.HasPrefix(s.Name, w.prefix) {
				want[symbol{s.Name, s.Value, s.Size, uint32(i + 1)}]++
			}
		}
	}
	var prefixes []string
	for _, s := range symbols {
		prefixes = append(prefixes, s.prefix)
	}
	found, err := ours.wanted(prefixes, elf.STT_FUNC)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found {
		if want[s]--; want[s] < 0 {
			t.Errorf("%+v is not there", s)
		}
	}
	for s, n := range want {
		if n > 0 {
			t.Errorf("%+v was not found", s)
		}
	}
}

// FuzzFindProbes: the file is anybody's.
func FuzzFindProbes(f *testing.F) {
	f.Add(image{names: allNames()}.build())
	f.Add(image{names: allNames(), old: true}.build())
	f.Add(image{names: allNames(), buckets: math.MaxUint32}.build())
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	needed := 0
	for _, s := range symbols {
		needed += int(b2u(s.need == metalabi.Required))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if probes, err := findProbes(bytes.NewReader(b)); err == nil && len(probes) < needed {
			t.Errorf("%d probes without an error", len(probes))
		}
	})
}
