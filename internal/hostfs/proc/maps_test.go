package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

const mapsText = "55d0c0000000-55d0c0001000 r--p 00000000 fd:01 1234                       /usr/bin/python3.10\n" +
	"55d0c0001000-55d0c0004000 r-xp 00001000 fd:01 1234                       /usr/bin/python3.10\n" +
	"55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]\n" +
	"7f0000000000-7f0000010000 rw-p 00000000 00:00 0 \n" +
	"7f1000000000-7f1000003000 rw-s 00000000 00:1a 77                         /dev/shm/tt_device_9956278468_memory\n" +
	"7f1000004000-7f1000007000 rw-s 00000000 00:1a 78                         /dev/shm/tt_device_1_memory (deleted)\n" +
	"7f2000000000-7f2000001000 r-xp 00000000 103:02 9                         /opt/a b/libtt\\012metal.so\n" +
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"

// parseMaps reads a whole list, a piece at a time.
func parseMaps(b []byte, keep [][]byte) []Mapping {
	x := mapsParser{keep: keep}
	for size := 1; len(b) > 0; size = size*3 + 1 {
		n := min(len(b), size)
		if x.add(b[:n]) != nil {
			break
		}
		b = b[n:]
	}
	if len(x.rest) > 0 {
		_ = x.addLine(x.rest)
	}
	return x.out
}

func TestParseMaps(t *testing.T) {
	want := []Mapping{
		{Dev: unix.Mkdev(0xfd, 1), Inode: 1234, Path: "/usr/bin/python3.10", Code: Range{0x55d0c0001000, 0x55d0c0004000, 0x1000}},
		{Dev: unix.Mkdev(0, 0x1a), Inode: 77, Path: "/dev/shm/tt_device_9956278468_memory", Shared: true, Writable: true},
		{Dev: unix.Mkdev(0, 0x1a), Inode: 78, Path: "/dev/shm/tt_device_1_memory", Deleted: true, Shared: true, Writable: true},
		{Dev: unix.Mkdev(0x103, 2), Inode: 9, Path: "/opt/a b/libtt\nmetal.so", Code: Range{0x7f2000000000, 0x7f2000001000, 0}},
	}
	all := [][]byte{[]byte("/")}
	got := parseMaps([]byte(mapsText), all)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = parseMaps([]byte(mapsText), [][]byte{[]byte("/nothing"), []byte("/tt_device_")})
	if diff := cmp.Diff(want[1:3], got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "\n", "x", "1-2", "1-2 r 0 0:0 5 /x\n"[:9], "2-1 r--p 0 0:0 5 /x", "1-2 r--p 0 00 5 /x", "1-2 r--p 0 0:0 -5 /x", "1-2 r-xp -1 0:0 5 /x"} {
		t.Run(bad, func(t *testing.T) {
			if m := parseMaps([]byte(bad), all); len(m) > 0 {
				t.Errorf("%q was parsed as %+v", bad, m)
			}
		})
	}
}

func TestParseMapsAllocatesNothingPerLine(t *testing.T) {
	text := []byte(strings.Repeat(mapsText, 50))
	none := [][]byte{[]byte("/dev/tenstorrent/"), []byte("/nowhere")}
	x := mapsParser{keep: none}
	if n := testing.AllocsPerRun(10, func() { _ = x.add(text) }); n != 0 {
		t.Errorf("%v allocations for unwanted lines", n)
	}
}

// A process that maps thousands of files of that name is an error: all of them
// would be compared with each other.
func TestTooManyMappings(t *testing.T) {
	x := mapsParser{keep: [][]byte{[]byte("/libtt_metal.so")}}
	var err error
	for i := 0; i <= maxMappings && err == nil; i++ {
		err = x.add(fmt.Appendf(nil, "7f2000000000-7f2000001000 r-xp 00000000 103:02 %d /opt/%d/libtt_metal.so\n", i+1, i))
	}
	if !errors.Is(err, errTooManyMappings) || len(x.out) != maxMappings {
		t.Errorf("%d mappings, %v", len(x.out), err)
	}
}

// A real mapping can be recognised by the file it is of.
func TestMappings(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(dir + "/tt_device_7_memory")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, 8192, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(mem) }()
	r := New(rootFS)
	r.KeepMappings("/tt_device_7_")
	got, err := mapsOf(r, os.Getpid())
	st, err2 := hostfs.At(dir).Stat("/tt_device_7_memory")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if len(got) != 1 || got[0].Inode != st.Ino || !got[0].Shared || got[0].Writable || got[0].Deleted || got[0].Path != f.Name() {
		t.Errorf("%+v, want inode %d", got, st.Ino)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if got, _ := mapsOf(r, os.Getpid()); len(got) != 1 || got[0].Deleted {
		t.Errorf("read twice in one sweep: %+v", got)
	}
	r.StartSweep()
	if got, _ := mapsOf(r, os.Getpid()); len(got) != 1 || !got[0].Deleted || got[0].Inode != st.Ino {
		t.Errorf("after its removal: %+v", got)
	}
}

func TestEnviron(t *testing.T) {
	keep := func(key string) bool { return strings.HasPrefix(key, "TT_") }
	got := parseEnviron([]byte("PATH=/bin\x00TT_VISIBLE_DEVICES=0,1\x00TT_EMPTY=\x00TT_VISIBLE_DEVICES=2\x00TT_NOVALUE\x00=TT_\x00TT_X=a=b\nc"), keep)
	want := map[string]string{"TT_VISIBLE_DEVICES": "0,1", "TT_EMPTY": "", "TT_X": "a=b\nc"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c := start(t, nil, "hold", os.DevNull)
	c.line()
	got, err := environ(New(rootFS), c.pid, func(key string) bool { return key == roleVariable })
	if diff := cmp.Diff(map[string]string{roleVariable: "hold"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func FuzzParseMaps(f *testing.F) {
	f.Add([]byte(mapsText))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range parseMaps(b, [][]byte{[]byte("/")}) {
			if m.Path == "" || m.Path[0] != '/' {
				t.Errorf("%+v", m)
			}
		}
	})
}

func FuzzParseEnviron(f *testing.F) {
	f.Add([]byte("A=1\x00B=2\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for k := range parseEnviron(b, func(string) bool { return true }) {
			if k == "" || strings.ContainsAny(k, "=\x00") {
				t.Errorf("key %q", k)
			}
		}
	})
}

func FuzzFindUser(f *testing.F) {
	f.Add([]byte("root:x:0:0:root:/root:/bin/sh\n"), 0)
	f.Fuzz(func(t *testing.T, b []byte, uid int) {
		if name, _, ok := findUser(b, uid); ok && (name == "" || strings.ContainsAny(name, ":")) {
			t.Errorf("user %q", name)
		}
	})
}
