package uprobe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mmap2 builds a record as the kernel writes it.
func mmap2(pid uint32, path string) []byte {
	name := append([]byte(path), 0)
	for len(name)%8 != 0 {
		name = append(name, 0)
	}
	b := binary.NativeEndian.AppendUint32(nil, recordMmap2)
	b = binary.NativeEndian.AppendUint16(b, 0)
	b = binary.NativeEndian.AppendUint16(b, uint16(recordHead+recordMmap2Head+len(name)+8))
	b = binary.NativeEndian.AppendUint32(b, pid)
	b = binary.NativeEndian.AppendUint32(b, pid+1)
	for _, word := range []uint64{0x1000, 0x200, 0x40, 8 << 32, 99, 0, 5} {
		b = binary.NativeEndian.AppendUint64(b, word)
	}
	b = append(b, name...)
	return binary.NativeEndian.AppendUint64(b, 123456)
}

func TestParseRecords(t *testing.T) {
	lost := []byte{recordLost, 0, 0, 0, 0, 0, 8, 0}
	run := bytes.Join([][]byte{mmap2(7, "/lib/libc.so.6"), mmap2(8, "/opt/libtt_metal.so"), mmap2(9, "/x/libtt_metal.so")}, nil)
	found, incomplete := parseRecords(run)
	want := []mapping{
		{pid: 8, start: 0x1000, end: 0x1200, offset: 0x40, inode: 99, path: "/opt/libtt_metal.so", time: 123456},
		{pid: 9, start: 0x1000, end: 0x1200, offset: 0x40, inode: 99, path: "/x/libtt_metal.so", time: 123456},
	}
	if diff := cmp.Diff(want, found, cmp.AllowUnexported(mapping{})); diff != "" || incomplete {
		t.Errorf("incomplete %v\n%s", incomplete, diff)
	}
	if _, incomplete := parseRecords(append(run, lost...)); !incomplete {
		t.Error("a loss was not noticed")
	}
}

func FuzzParseRecords(f *testing.F) {
	f.Add(mmap2(8, "/opt/libtt_metal.so"))
	f.Add([]byte{recordLost, 0, 0, 0, 0, 0, 8, 0})
	f.Fuzz(func(_ *testing.T, b []byte) { parseRecords(b) })
}

func TestFindProbes(t *testing.T) {
	_, library := fake(t)
	f, err := os.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	probes, err := findProbes(f)
	if err != nil {
		t.Fatal(err)
	}
	sites := map[kind]bool{}
	for _, p := range probes {
		sites[p.site] = true
		code := make([]byte, 1)
		if _, err := f.ReadAt(code, int64(p.offset)); err != nil || p.offset == 0 {
			t.Errorf("site %d at %#x: %v", p.site, p.offset, err)
		}
	}
	if len(sites) != inFake() {
		t.Errorf("%d sites of %d", len(sites), inFake())
	}
	libc, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer libc.Close()
	if _, err := findProbes(libc); err == nil {
		t.Error("a file that is no library of tt-metal is accepted")
	}
}

func TestEntry(t *testing.T) {
	for _, c := range []struct {
		code string
		skip uint64
		ok   bool
	}{
		{"\x55\x41\x57\x41\x56", 0, true},
		{"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5", 4, true},
		{"\x48\x8b\x07\xff\x60\x10", 0, true},
		{"\x66\x2e\x0f\x1f\x84\x00\x00", 0, false},
		{"\xf3\x0f\x1e\xfa\x66\x2e\x0f\x1f", 4, false},
	} {
		t.Run(fmt.Sprintf("% x", c.code), func(t *testing.T) {
			if skip, ok := entryAMD64([]byte(c.code)); skip != c.skip || ok != c.ok {
				t.Errorf("% x: %d %v", c.code, skip, ok)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	b := make([]byte, eventBytes)
	for i := range b {
		b[i] = byte(i)
	}
	e, err := decode(b)
	if err != nil || e.kind != 12 || !e.odd || e.word[5] == 0 {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := decode(b[:eventBytes-1]); err == nil {
		t.Error("a short event is accepted")
	}
}
