package shm

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMappings(t *testing.T) {
	shm, disk := unix.Mkdev(0, 0x1b), unix.Mkdev(0xfe, 0)
	const lib = "/venv with blank/site-packages/ttnn/build/lib/libtt_metal.so"
	got := mappingsOf([]proc.Mapping{
		{Dev: shm, Inode: 12, Path: "/dev/shm/tt_device_4476187513037_memory", Shared: true, Writable: true},
		{Dev: shm, Inode: 13, Path: "/dev/shm/tt_device_5_memory", Shared: true},
		{Dev: shm, Inode: 14, Path: "/dev/shm/tt_device_6_memory", Shared: true, Writable: true, Deleted: true},
		{Dev: shm, Inode: 15, Path: "/dev/shm/tt_device_7_memory", Writable: true},
		{Dev: shm, Inode: 13, Path: "/elsewhere/tt_device_5_memory", Shared: true, Writable: true},
		{Dev: shm, Inode: 16, Path: "/dev/shm/tt_device_8_util", Shared: true, Writable: true},
		{Dev: disk, Inode: 77, Path: "/opt/libtt_metal_extras.txt"},
		{Dev: disk, Inode: 10011981, Path: lib},
		{Dev: disk, Inode: 10011982, Path: "/second" + lib},
		{Dev: disk, Inode: 9, Path: "/dev/tenstorrent/0", Shared: true},
	})
	want := mappings{
		regions: []mapping{
			{inode: inode{Dev: shm, Ino: 12}, id: 4476187513037, writable: true},
			{inode: inode{Dev: shm, Ino: 13}, id: 5, writable: true},
			{inode: inode{Dev: shm, Ino: 14}, id: 6, writable: true, deleted: true},
		},
		lib:    library{inode: inode{Dev: disk, Ino: 10011981}, path: lib},
		drives: true,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mappings{}, mapping{}, library{}, inode{})); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
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
		t.Run(tt.want, func(t *testing.T) {
			if got := distInfo(tt.names); got.V != tt.want || got.Reason() != tt.reason {
				t.Errorf("%q: %+v", tt.names, got)
			}
		})
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
		t.Run(lib, func(t *testing.T) {
			if got, ok := sitePackages(lib); got != want || ok != (want != "") {
				t.Errorf("%s: %q", lib, got)
			}
		})
	}
}

func TestReleases(t *testing.T) {
	for version, want := range map[string]struct{ one, v3 bool }{
		"0.69.9": {false, false}, "0.70.0": {false, true}, "0.71.2": {false, true}, "0.72.0": {true, true},
		"0.72.0.dev20260601": {true, true}, "0.81.1": {true, true}, "0.82.0": {true, false}, "1.0.0": {true, false},
	} {
		t.Run(version, func(t *testing.T) {
			one := slices.ContainsFunc(releaseDoubts(Layout{Version: 3}, model.Value(version)), func(d model.Doubt) bool { return d.Kind == model.OtherThreads })
			if v3 := knownV3(model.Value(version)); one != want.one || v3 != want.v3 {
				t.Errorf("%s: one thread %v, layout 3 %v, want %+v", version, one, v3, want)
			}
		})
	}
	if yes, ok := atLeast("nonsense", 0, 72); yes || ok {
		t.Error("nonsense has no version")
	}
}
