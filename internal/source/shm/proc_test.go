package shm

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMappings(t *testing.T) {
	const text = `55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 131                        /usr/bin/python3.12
7f91-7f93 rw-s 00000000 00:1b 12                         /dev/shm/tt_device_4476187513037_memory
7f93-7f94 r--s 00000000 00:1b 13                         /dev/shm/tt_device_5_memory
7f94-7f95 rw-s 00000000 00:1b 14                         /dev/shm/tt_device_6_memory (deleted)
7f95-7f96 rw-p 00000000 00:1b 15                         /dev/shm/tt_device_7_memory
7f96-7f97 rw-s 00000000 00:1b 13                         /dev/shm/tt_device_5_memory
7f97-7f98 rw-s 00000000 00:1b 16                         /dev/shm/tt_device_8_util
7f98-7f99 r--p 00000000 fe:00 10011981                   /venv with blank/site-packages/ttnn/build/lib/libtt_metal.so
7f99-7f9a r-xp 0077f000 fe:00 10011981                   /venv with blank/site-packages/ttnn/build/lib/libtt_metal.so
7f9a-7f9b r--p 00000000 fe:00 77                         /opt/libtt_metal_extras.txt
7f9b-7f9c rw-p 00000000 00:00 0                          [heap]
7f9c-7f9d rw-s 00000000 zz:1b 12                         /dev/shm/tt_device_9_memory
`
	var m mappings
	for line := range strings.Lines(text) {
		m.add([]byte(strings.TrimSuffix(line, "\n")))
	}
	shm, disk := unix.Mkdev(0, 0x1b), unix.Mkdev(0xfe, 0)
	want := mappings{
		regions: []mapping{
			{inode: inode{shm, 12}, id: 4476187513037, writable: true},
			{inode: inode{shm, 13}, id: 5, writable: true},
			{inode: inode{shm, 14}, id: 6, writable: true, deleted: true},
		},
		lib: library{inode: inode{disk, 10011981}, path: "/venv with blank/site-packages/ttnn/build/lib/libtt_metal.so"},
	}
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(mappings{}, mapping{}, library{}, inode{})); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
}

func FuzzMappings(f *testing.F) {
	f.Add([]byte("7f91-7f93 rw-s 00000000 00:1b 12   /dev/shm/tt_device_5_memory (deleted)"))
	f.Add([]byte("7f91-7f93 rw-s 00000000 00:1b 12 /libtt_metal.so"))
	f.Add([]byte(" /tt_device_5_memory"))
	f.Fuzz(func(t *testing.T, line []byte) {
		var m mappings
		m.add(line)
		m.add(line)
		if len(m.regions) > 1 {
			t.Fatalf("one line gave %+v", m.regions)
		}
		for _, r := range m.regions {
			if !strings.Contains(string(line), RegionName(r.id)) {
				t.Fatalf("%q gave chip %d", line, r.id)
			}
		}
	})
}

func TestParseStatus(t *testing.T) {
	nsPID, uid := parseStatus([]byte("Name:\tx\nUid:\t1\t1000\t3\t4\nNSpid:\t4711\t33\t7\n"), 4711)
	if nsPID != 7 || uid != 1000 {
		t.Errorf("pid %d, uid %d", nsPID, uid)
	}
	if nsPID, uid = parseStatus([]byte("Name:\tx\nUid:\nNSpid:\n"), 4711); nsPID != 4711 || uid != -1 {
		t.Errorf("pid %d, uid %d of an old kernel", nsPID, uid)
	}
}

func TestParseNamespace(t *testing.T) {
	for link, want := range map[string]uint64{
		"pid:[4026531836]": hostNamespace, "pid:[]": 0, "": 0, "mnt:[1]": 0, "pid:[x]": 0, "pid:[": 0,
	} {
		if got := parseNamespace(link); got != want {
			t.Errorf("%q: %d, want %d", link, got, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := []byte("A=1\x00" + disableVariable + "X=0\x00X" + disableVariable + "=0\x00" + disableVariable + "=1yes\x00B=2")
	if got := firstOf(env, disableVariable); got != '1' {
		t.Errorf("got %q", got)
	}
	if got := firstOf([]byte(disableVariable+"="), disableVariable); got != 0 {
		t.Errorf("empty: %q", got)
	}
}

func TestDistInfo(t *testing.T) {
	tests := []struct {
		names  []string
		want   string
		reason string
	}{
		{[]string{"numpy", "ttnn", "ttnn-0.81.1.dist-info", "ttnn.libs"}, "0.81.1", ""},
		{[]string{"ttnn-0.72.0.dev20260601+g1a2b.dist-info"}, "0.72.0.dev20260601+g1a2b", ""},
		{[]string{"ttnn-0.71.2.dist-info", "ttnn-0.81.1.dist-info"}, "", "absent: several ttnn packages lie beside its libtt_metal.so"},
		{[]string{"ttnn-\x1b[31m.dist-info", "ttnn-.dist-info", "xttnn-1.0.dist-info"}, "", "absent: " + notWheel},
		{nil, "", "absent: " + notWheel},
	}
	for _, tt := range tests {
		if got := distInfo(tt.names); got.V != tt.want || got.Reason() != tt.reason {
			t.Errorf("%q: %+v", tt.names, got)
		}
	}
}

func TestSitePackages(t *testing.T) {
	for lib, want := range map[string]string{
		"/v/lib/python3.12/site-packages/ttnn/build/lib/libtt_metal.so": "/v/lib/python3.12/site-packages",
		"/usr/lib/python3/dist-packages/ttnn/libtt_metal.so":            "/usr/lib/python3/dist-packages",
		"/home/me/tt-metal/build_Release/lib/libtt_metal.so":            "",
		"libtt_metal.so": "",
		"/":              "",
	} {
		if got, ok := sitePackages(lib); got != want || ok != (want != "") {
			t.Errorf("%s: %q", lib, got)
		}
	}
}

func TestReleases(t *testing.T) {
	for version, want := range map[string]struct{ one, v3 bool }{
		"0.69.9": {false, false}, "0.70.0": {false, true}, "0.71.2": {false, true}, "0.72.0": {true, true},
		"0.72.0.dev20260601": {true, true}, "0.81.1": {true, true}, "0.82.0": {true, false}, "1.0.0": {true, false},
	} {
		one := threadNote(model.Value(version), 3) != ""
		if v3 := knownV3(model.Value(version)); one != want.one || v3 != want.v3 {
			t.Errorf("%s: one thread %v, layout 3 %v, want %+v", version, one, v3, want)
		}
	}
	if yes, ok := atLeast("nonsense", 0, 72); yes || ok {
		t.Error("nonsense has no version")
	}
}

// A process that was opened stays the one that was meant.
func TestProcessIsPinned(t *testing.T) {
	p, err := openProcess(hostfs.Root{}, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if !p.alive() || p.nsPID == 0 || p.uid != os.Geteuid() || p.start == 0 || p.ppid != os.Getppid() {
		t.Errorf("we are %+v", p)
	}
	if _, err := openProcess(hostfs.Root{}, 1<<30); err == nil {
		t.Error("there is no such process")
	}
}
