package proc

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ttmon/ttmon/internal/model"
)

// What the kernel prints for a DRM driver, and for tt-kmd 2.10.
const (
	drmInfo = "pos:\t0\nflags:\t02100002\nmnt_id:\t25\nino:\t451\n" +
		"drm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n" +
		"drm-total-vram0:\t2 MiB\ndrm-resident-vram0:\t1024 KiB\ndrm-memory-vram0:\t9\ndrm-shared-vram0:\t4 MiB\n" +
		"drm-total-l1:\t4096\ndrm-total-gtt:\t77 MiB\ndrm-resident-gtt:\t77 MiB\n" +
		"drm-engine-tensix:\t1500000 ns\ndrm-engine-capacity-tensix:\t64\ndrm-total-cycles-tensix:\t99\ndrm-cycles-tensix:\t9\n"
	ttInfo = "pos:\t0\nflags:\t02102002\nmnt_id:\t25\nino:\t451\n"
)

var fdinfoOptions = []cmp.Option{cmpopts.IgnoreUnexported(fdRegion{}, fdInfo{})}

func TestParseFDInfo(t *testing.T) {
	got := parseFDInfo([]byte(drmInfo))
	want := fdInfo{
		Flags: 0o2100002, Driver: "xe", ClientID: "7", BusID: "0000:03:00.0",
		Regions: []fdRegion{{Name: "vram0", Bytes: 1 << 20}, {Name: "l1", Bytes: 4096}, {Name: "gtt", Bytes: 77 << 20}},
		Engines: []Engine{{"tensix", 1500 * time.Microsecond, 64}},
	}
	if diff := cmp.Diff(want, got, fdinfoOptions...); diff != "" {
		t.Error(diff)
	}
	if got := parseFDInfo([]byte(ttInfo)); got.hasDRMKeys() {
		t.Errorf("tt-kmd's: %+v", got)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "17": 17, "3 KiB": 3 << 10, "3 MiB": 3 << 20, "3 GiB": 3 << 30} {
		t.Run(text, func(t *testing.T) {
			if v, ok := parseSize(text); !ok || v != want {
				t.Errorf("%q: %d, %v", text, v, ok)
			}
		})
	}
	for _, bad := range []string{"", "KiB", "-1", "1 TB", "18446744073709551615 KiB", "1  KiB"} {
		t.Run(bad, func(t *testing.T) {
			if v, ok := parseSize(bad); ok {
				t.Errorf("%q was parsed as %d", bad, v)
			}
		})
	}
}

func TestPoolOf(t *testing.T) {
	for region, want := range map[string]model.Pool{
		"dram": model.DRAM, "DRAM3": model.DRAM, "vram": model.DRAM, "gddr0": model.DRAM,
		"l1": model.L1, "L1": model.L1, "sram": model.L1, "l1_small": model.L1Small, "trace": model.Trace,
	} {
		t.Run(region, func(t *testing.T) {
			if p, ok := poolOf(region); !ok || p != want {
				t.Errorf("%s: %v, %v", region, p, ok)
			}
		})
	}
	for _, region := range []string{"gtt", "system", "", "l2", "cpu", "stolen"} {
		t.Run(region, func(t *testing.T) {
			if p, ok := poolOf(region); ok {
				t.Errorf("%q is in pool %v", region, p)
			}
		})
	}
}

func TestMemoryOfClients(t *testing.T) {
	client := func(id string, bytes uint64) fdInfo {
		return fdInfo{ClientID: id, Regions: []fdRegion{{Name: "dram", Bytes: bytes}}}
	}
	m, known := memoryOf([]fdInfo{client("1", 100), client("1", 100), client("2", 10)})
	if !known || m[model.DRAM] != model.ExactBytes(110) || m[model.L1].Known() {
		t.Errorf("%v, %v", m, known)
	}
	if _, known := memoryOf([]fdInfo{{Regions: []fdRegion{{Name: "gtt", Bytes: 1}}}}); known {
		t.Error("host memory passes for the device's")
	}
}

// holding adds a process, made of files, that holds descriptors of device 0.
func (tr *tree) holding(pid int, info string, fds ...int) {
	tr.addProcess(pid, "python3", statTail, "python3\x00", "0::/\n")
	dir := "proc/" + strconv.Itoa(pid)
	tr.mkdir(dir + "/fd")
	for _, fd := range fds {
		if err := os.Symlink(tr.node(0), tr.dir+"/"+dir+"/fd/"+strconv.Itoa(fd)); err != nil {
			tr.t.Fatal(err)
		}
		tr.write(dir+"/fdinfo/"+strconv.Itoa(fd), info)
	}
}

func TestResolveWithFDInfo(t *testing.T) {
	tr := newTree(t, 1)
	tr.holding(70, drmInfo, 3, 4)
	u := resolve(t, tr.reader(), "3.0.0", listed(0, 70, 70))
	d := u.Processes[0].Devices[0]
	if d.Source != "fdinfo" || d.Memory[model.DRAM] != model.ExactBytes(1<<20) || d.Memory[model.L1] != model.ExactBytes(4096) {
		t.Errorf("%+v", d)
	}
}

// TestEngines: what engines did for a process is the sum of its clients, each once.
func TestEngines(t *testing.T) {
	client := func(id, text string) fdInfo { return parseFDInfo([]byte("drm-client-id: " + id + "\n" + text)) }
	for name, c := range map[string]struct {
		infos []fdInfo
		want  []Engine
	}{
		"none":          {[]fdInfo{parseFDInfo([]byte(ttInfo))}, nil},
		"a duplicate":   {[]fdInfo{client("1", "drm-engine-compute: 5 ns\n"), client("1", "drm-engine-compute: 5 ns\n")}, []Engine{{"compute", 5, 0}}},
		"two clients":   {[]fdInfo{client("1", "drm-engine-compute: 5 ns\n"), client("2", "drm-engine-compute: 7 ns\n")}, []Engine{{"compute", 12, 0}}},
		"two engines":   {[]fdInfo{client("1", "drm-engine-a: 5 ns\ndrm-engine-capacity-b: 2\ndrm-engine-b: 9 ns\n")}, []Engine{{"a", 5, 0}, {"b", 9, 2}}},
		"capacity only": {[]fdInfo{client("1", "drm-engine-capacity-b: 2\n")}, nil},
		"nonsense":      {[]fdInfo{client("1", "drm-engine-: 1 ns\ndrm-engine-a: 1 ms\ndrm-engine-a: -1 ns\ndrm-engine-b: 99999999999999999999 ns\n")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := enginesOf(c.infos); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	tr := newTree(t, 1)
	tr.holding(70, "drm-engine-compute: 5 ns\n", 3)
	u := resolve(t, tr.reader(), "3.0.0", listed(0, 70))
	want := map[EngineUser][]Engine{{u.Processes[0].ID(), 0}: {{"compute", 5, 0}}}
	if diff := cmp.Diff(want, u.Engines); diff != "" || u.Read.IsZero() {
		t.Error(diff)
	}
}

// TestFDInfoOfAnotherDevice: what a descriptor says of another device is not this one's.
func TestFDInfoOfAnotherDevice(t *testing.T) {
	tr := newTree(t, 1)
	tr.holding(70, drmInfo, 3)
	for bus, source := range map[string]model.Source{"0000:03:00.0": model.FromFDInfo, "0000:04:00.0": "", "": model.FromFDInfo} {
		t.Run(bus, func(t *testing.T) {
			of := listed(0, 70)
			of.BusID = bus
			if d := resolve(t, tr.reader(), "3.0.0", of).Processes[0].Devices[0]; d.Source != source {
				t.Errorf("of %q: %+v", bus, d)
			}
		})
	}
}

// Today's driver: nothing is shown, and the question is not asked every time.
func TestResolveWithoutFDInfo(t *testing.T) {
	tr := newTree(t, 1)
	tr.holding(70, ttInfo, 3)
	r := tr.reader()
	if d := resolve(t, r, "2.10.0", listed(0, 70)).Processes[0].Devices[0]; d.Source != "" || d.Memory != (model.PoolBytes{}) {
		t.Errorf("%+v", d)
	}
	tr.write("proc/70/fdinfo/3", drmInfo)
	if d := resolve(t, r, "2.10.0", listed(0, 70)).Processes[0].Devices[0]; d.Source != "" {
		t.Error("asked again at once")
	}
	r.probeAt = time.Time{}
	if d := resolve(t, r, "2.10.0", listed(0, 70)).Processes[0].Devices[0]; d.Source != "fdinfo" {
		t.Error("not asked again")
	}
}

func FuzzParseFDInfo(f *testing.F) {
	f.Add([]byte(drmInfo))
	f.Add([]byte(ttInfo))
	f.Add([]byte("drm-resident-:\t1\ndrm-engine-: 1 ns\ndrm-total-x: 18446744073709551615 MiB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i := parseFDInfo(b)
		for _, r := range i.Regions {
			if r.Name == "" {
				t.Error("a region without a name")
			}
		}
	})
}
