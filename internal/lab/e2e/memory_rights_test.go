package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

const nobody = 65534

// TestRights: root sees everybody's memory. Another user sees what it may
// read, and for exactly the rest "denied" with the remedy, never 0.
func TestRights(t *testing.T) {
	c := newScriptedHost(t, sim.Options{Boards: "n150,p150a,p100a,n150"})
	id := map[int]uint64{}
	for _, ch := range chipsIn(t, c.host) {
		id[ch.Device] = ch.ID
	}
	on := func(device int, o metal.Options) *metal.Process {
		p := c.play(o)
		c.do(p, fmt.Sprintf("device /dev/tenstorrent/%d", device), fmt.Sprintf("open %d", id[device]),
			fmt.Sprintf("alloc %d dram %dM", id[device], 1+device), fmt.Sprintf("alloc %d l1 %dK", id[device], 1+device))
		return p
	}
	roots := on(0, metal.Options{})
	own := on(1, metal.Options{UID: nobody})
	// An operator made this one for all to read.
	r := runProgram(t, c.host, "sh", "-c", `head -c 8576 /dev/zero >"$1" && chmod 666 "$1"`, "sh", fmt.Sprintf("/dev/shm/tt_device_%d_memory", id[2]))
	if r.code != 0 {
		t.Fatal(r.err)
	}
	shared := on(2, metal.Options{UID: 1000})
	mock := c.play(metal.Options{}, "open 4242", "alloc 4242 dram 1M") // a chip that no device here has

	// They all have device 0 open and account elsewhere: it is root's alone.
	s := snapshot(t, c.host)
	for device, p := range map[int]*metal.Process{0: roots, 1: own, 2: shared} {
		t.Run(fmt.Sprint("root, device ", device), func(t *testing.T) {
			wantBytes(t, fmt.Sprintf("device %d as root", device), s.Device(device).Memory.Pools[model.DRAM].Used, uint64(1+device)<<20)
			if chipUse(s, p.PID, id[device]) == nil {
				t.Errorf("root does not see process %d on device %d", p.PID, device)
			}
		})
	}
	wantBytes(t, "unmatched as root", s.Unmatched[0].Memory.Pools[model.DRAM].Used, 1<<20)

	res := asNobody(t, c.host, "smi", "--json")
	s, err := wire.Decode([]byte(res.out))
	if err != nil {
		t.Fatalf("%v: %s", err, res.err)
	}
	for device, want := range map[int]model.Tracking{0: model.TrackDenied, 1: model.TrackOK, 2: model.TrackOK, 3: model.TrackOK} {
		t.Run(fmt.Sprint("nobody, device ", device), func(t *testing.T) {
			m := &s.Device(device).Memory
			used := m.Pools[model.DRAM].Used
			switch {
			case want == model.TrackDenied:
				wantNoBytes(t, fmt.Sprintf("device %d as nobody", device), used, model.Denied)
				if !doubted(m.Doubts, model.RegionDenied) {
					t.Errorf("device %d: %+v", device, m.Doubts)
				}
			case device == 3:
				wantBytes(t, "an unused device", used, 0)
			default:
				wantBytes(t, fmt.Sprintf("device %d as nobody", device), used, uint64(1+device)<<20)
			}
			if m.Tracking != want {
				t.Errorf("device %d as nobody: tracking %s (%+v), want %s", device, m.Tracking, m.Doubts, want)
			}
		})
	}
	for _, u := range processOf(t, s, roots.PID).Devices {
		if u.Device == 0 {
			wantNoBytes(t, "root's process as nobody", u.Memory[model.DRAM], model.Denied)
		}
	}
	if len(s.Unmatched) != 1 || s.Unmatched[0].Memory.Tracking != model.TrackDenied {
		t.Errorf("the region of a chip that no device here has (process %d): %+v", mock.PID, s.Unmatched)
	}
	c.deniedEverywhere()
}

// deniedEverywhere looks at what people and scripts see as nobody: the word,
// and no zero.
func (c *scriptedHost) deniedEverywhere() {
	c.Helper()
	for _, args := range [][]string{{"smi", "-i", "0"}, {"smi", "-q", "-i", "0", "-d", "MEMORY,PIDS"}} {
		if r := asNobody(c.T, c.host, args...); !strings.Contains(r.out, "denied") || strings.Contains(r.out, " 0 B") {
			c.Errorf("ttmon %v as nobody:\n%s%s", args, r.out, r.err)
		}
	}
	r := asNobody(c.T, c.host, "smi", "-i", "0", "--query-device=memory.tracked,memory.used,l1.used,trace.used", "--format=csv,noheader,nounits")
	if strings.Contains(r.out, "0") || !strings.Contains(r.out, "denied") {
		c.Errorf("the query as nobody: %q", r.out)
	}
	r = asNobody(c.T, c.host, "smi", "dmon", "-i", "0", "-s", "m", "-c", "1")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if last := lines[len(lines)-1]; strings.Contains(strings.TrimPrefix(strings.TrimSpace(last), "0"), " 0 ") {
		c.Errorf("dmon as nobody shows a zero:\n%s", r.out)
	}
}

// fileState is all that a look must not change.
type fileState struct {
	Bytes                  string
	Inode, Links           uint64
	Mode, Owner            uint32
	Size                   int64
	Read, Written, Changed syscall.Timespec
}

// TestNothingIsWritten: regions and locks are the same before and after every
// command, to the last byte and time stamp. As root, regions do not even show
// that they were read.
func TestNothingIsWritten(t *testing.T) {
	c := newScriptedHost(t, sim.Options{Boards: "n300"})
	ids := chipsIn(t, c.host)
	p := c.play(metal.Options{}, "open @", "alloc @ dram 1G", "cb @ 5K")
	c.do(p, fmt.Sprintf("open %d", ids[1].ID), fmt.Sprintf("alloc %d l1 7", ids[1].ID))
	c.kill(c.play(metal.Options{Layout: 4, UID: 1000}, "open 77", "alloc 77 dram 3M"))
	c.play(metal.Options{}, "open 4242 1", "alloc 4242 trace 3M")
	runProgram(t, c.host, "sh", "-c", `head -c 56 /dev/zero >/dev/shm/TT_UMD_LOCK.CHIP_IN_USE_0_PCIe; head -c 100 /dev/urandom >/dev/shm/tt_device_99_memory`)
	dir := c.host.Root() + "/dev/shm"
	before := states(t, dir)
	if len(before) != 6 {
		t.Fatalf("%d files to look at, want 6", len(before))
	}
	for _, args := range memoryCommands {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if r := runIn(t, c.host, args...); r.code != 0 && r.code != exitTrouble {
				t.Errorf("ttmon %v: exit code %d: %s", args, r.code, r.err)
			}
		})
	}
	w := watch(t, c.host)
	w.next()
	w.next()
	compareStates(t, before, states(t, dir), true)
	for _, args := range memoryCommands {
		asNobody(t, c.host, args...)
	}
	compareStates(t, before, states(t, dir), false)
}

// memoryCommands are all that look at regions.
var memoryCommands = [][]string{
	{"smi"},
	{"smi", "-q"},
	{"smi", "--json"},
	{"smi", "-L"},
	{"smi", "dmon", "-c", "2", "--interval", "0.1"},
	{"smi", "pmon", "-c", "1"},
	{"smi", "--query-apps=used_memory", "--format=csv"},
	{"stale"},
	{"stale", "--json"},
}

// compareStates finds what changed. That a file was read shows, unless it is a
// region and the reader may hide it.
func compareStates(t *testing.T, before, after map[string]fileState, hidden bool) {
	t.Helper()
	for name, st := range after {
		if !hidden || !strings.HasPrefix(name, "tt_device_") {
			st.Read = before[name].Read
			after[name] = st
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("ttmon changed something (-before +after):\n%s", diff)
	}
}

// states reads all files of a directory without changing their access times.
func states(t *testing.T, dir string) map[string]fileState {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]fileState{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOATIME, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, st.Size)
		if _, err := f.Read(b); err != nil {
			t.Fatal(err)
		}
		f.Close()
		list[e.Name()] = fileState{
			Bytes: string(b), Inode: st.Ino, Links: uint64(st.Nlink), Mode: st.Mode, Owner: st.Uid, Size: st.Size,
			Read: st.Atim, Written: st.Mtim, Changed: st.Ctim,
		}
	}
	return list
}
