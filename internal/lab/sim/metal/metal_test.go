package metal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) {
	Reexec()
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, o Options) *Process {
	t.Helper()
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.End(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func do(t *testing.T, p *Process, commands ...string) (last Reply) {
	t.Helper()
	for _, c := range commands {
		var err error
		if last, err = p.Do(c); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// look reads words of a region.
type words []byte

func readRegion(t *testing.T, id uint64) words {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/dev/shm/tt_device_%d_memory", id))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w words) u32(at int) uint32 { return binary.LittleEndian.Uint32(w[at:]) }
func (w words) u64(at int) uint64 { return binary.LittleEndian.Uint64(w[at:]) }

func (w words) slot(i int) (pid int32, dram uint64) {
	at := atProcesses + i*processBytes
	return int32(w.u32(at)), w.u64(at + inTotals)
}

// expect checks what writers are known to leave in a region.
func expect(t *testing.T, w words, version, refs, active uint32, totalDRAM uint64) {
	t.Helper()
	got := [3]uint32{w.u32(atVersion), w.u32(atRefs), w.u32(atActive)}
	if want := [3]uint32{version, refs, active}; got != want || w.u64(atTotals) != totalDRAM {
		t.Errorf("version, references, active %v, DRAM %d; want %v, %d", got, w.u64(atTotals), want, totalDRAM)
	}
}

func cleanShm(t *testing.T) {
	t.Helper()
	hermetic.Need(t)
	t.Cleanup(func() {
		entries, _ := os.ReadDir("/dev/shm")
		for _, e := range entries {
			_ = os.Remove("/dev/shm/" + e.Name())
		}
	})
}

func kill(t *testing.T, p *Process) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
}

// The known mistakes of layout 3, as they show in the region.
func TestMistakesOfLayout3(t *testing.T) {
	cleanShm(t)
	a := start(t, Options{Layout: 3})
	do(t, a, "open 1 5")
	expect(t, readRegion(t, 1), 3, 1, 0, 0) // no slot before the first allocation
	do(t, a, "alloc 1 dram 1000")
	expect(t, readRegion(t, 1), 3, 1, 1, 1000)
	kill(t, a)
	b := start(t, Options{Layout: 3})
	do(t, b, "open 1", "alloc 1 dram 7")
	expect(t, readRegion(t, 1), 3, 2, 2, 1007)
	do(t, b, "close 1")
	// The ghost keeps its slot, its bytes and its reference; the per-chip
	// table even keeps what was freed.
	w := readRegion(t, 1)
	expect(t, w, 3, 1, 1, 1000)
	if pid, dram := w.slot(0); int(pid) != a.PID || dram != 1000 {
		t.Errorf("slot 0: %d %d", pid, dram)
	}
	if got := w.u64(atChips + chipBytes + inChipTotals); got != 7 {
		t.Errorf("per-chip table: %d, want the 7 that are long freed", got)
	}
	if w.u32(atDeviceID) != 0 {
		t.Error("the last attacher's logical id stays")
	}
}

func TestForkedChildDetaches(t *testing.T) {
	cleanShm(t)
	p := start(t, Options{})
	do(t, p, "open 1", "alloc 1 dram 5", "fork quit")
	expect(t, readRegion(t, 1), 3, 0, 1, 0)
	do(t, p, "fork quit")
	expect(t, readRegion(t, 1), 3, 0xFFFFFFFF, 1, 0)
	if pid, dram := readRegion(t, 1).slot(0); int(pid) != p.PID || dram != 5 {
		t.Errorf("the parent's slot: %d %d", pid, dram)
	}
}

func TestLayout4Reaps(t *testing.T) {
	cleanShm(t)
	o := Options{Layout: 4}
	a := start(t, o)
	do(t, a, "open 1")
	expect(t, readRegion(t, 1), 4, 1, 1, 0)
	do(t, a, "alloc 1 dram 1000", "cb 1 30")
	kill(t, a)
	b := start(t, o)
	do(t, b, "open 1")
	w := readRegion(t, 1)
	expect(t, w, 4, 1, 1, 0)
	if pid, _ := w.slot(0); int(pid) != b.PID || w.u64(atTotals+8*int(CB)) != 0 {
		t.Errorf("slot 0 is %d's, CB total %d", pid, w.u64(atTotals+8*int(CB)))
	}
	do(t, b, "alloc 1 dram 10", "cb 1 8", "cb 1 3", "close 1")
	expect(t, readRegion(t, 1), 4, 0, 0, 0)
}

func TestLayout4OverLayout3(t *testing.T) {
	cleanShm(t)
	old, young := start(t, Options{Layout: 3}), start(t, Options{Layout: 4})
	do(t, old, "open 1", "alloc 1 dram 1000")
	do(t, young, "open 1")
	expect(t, readRegion(t, 1), 4, 1, 1, 0) // wiped
	do(t, young, "close 1")
	do(t, old, "close 1")
	expect(t, readRegion(t, 1), 4, 0xFFFFFFFF, 0, 0)
	// Layout 3 stays away from a layout 4 that seems to be in use.
	if _, err := old.Do("open 1"); err == nil {
		t.Error("attached to another layout")
	}
}

func TestFullTable(t *testing.T) {
	for _, layout := range []int{3, 4} {
		t.Run(fmt.Sprint(layout), func(t *testing.T) {
			cleanShm(t)
			p := start(t, Options{Layout: layout})
			do(t, p, "open 1")
			for i := range processCount { // pids of no process; 1 is alive for layout 4
				do(t, p, fmt.Sprintf("store 1 %d 1", atProcesses+i*processBytes))
			}
			before := readRegion(t, 1).u64(atTotals)
			do(t, p, "alloc 1 dram 500")
			// Layout 3 counts it where nothing can ever take it off again.
			want := map[int]uint64{3: before + 500, 4: before}[layout]
			if got := readRegion(t, 1).u64(atTotals); got != want {
				t.Errorf("total %d, want %d", got, want)
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	cleanShm(t)
	p := start(t, Options{})
	if r := do(t, p, "open 1", "alloc 1 dram 1", "cb 1 100"); r.Dropped {
		t.Error("the first update was dropped")
	}
	if r := do(t, p, "cb 1 200"); !r.Dropped || readRegion(t, 1).u64(atTotals+8*int(CB)) != 100 {
		t.Error("the second update within 100 ms was not dropped")
	}
}

func TestContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: namespaces and other users")
	}
	cleanShm(t)
	for _, tt := range []struct {
		o      Options
		pid    int
		shared bool
	}{
		{Options{Container: true}, 1, true},
		{Options{Container: true, PID: 7}, 7, true},
		{Options{Container: true, PID: 7, UID: 65534, PrivateShm: true}, 7, false},
		{Options{Container: true, UID: 65534, PrivateShm: true}, 1, false},
	} {
		t.Run(fmt.Sprintf("pid %d, uid %d", tt.o.PID, tt.o.UID), func(t *testing.T) {
			p := start(t, tt.o)
			r := do(t, p, "open 1", "alloc 1 dram 5")
			if r.PID != tt.pid || p.PID == tt.pid {
				t.Errorf("%+v: pid %d inside, %d outside", tt.o, r.PID, p.PID)
			}
			_, err := os.Stat("/dev/shm/tt_device_1_memory")
			if (err == nil) != tt.shared {
				t.Errorf("%+v: region in our /dev/shm: %v", tt.o, err)
			}
			if st, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID)); err != nil || int(st.Sys().(*syscall.Stat_t).Uid) != tt.o.UID {
				t.Errorf("%+v: %+v, %v", tt.o, st, err)
			}
			kill(t, p)
			_ = os.Remove("/dev/shm/tt_device_1_memory")
		})
	}
}

func TestScriptErrors(t *testing.T) {
	w, err := New(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"alloc 1 dram 5":        "chip 1 is not open",
		"alloc":                 "alloc needs a chip id",
		"open x":                `open: "x" is not a chip id`,
		"open -1":               `open: "-1" is not a chip id`,
		"alloc 1 cb 5":          `"cb" is not a pool: use dram, l1, l1_small or trace`,
		"alloc 1 dram 5X":       `"5X" is not a size`,
		"alloc 1 dram 5 onmain": `alloc: what is "onmain"?`,
		"frobnicate":            `no command "frobnicate"; commands are:`,
		"sleep soon":            `"soon"`,
		"store 1 3 4":           "chip 1 is not open",
		"lib /nonexistent":      "no such file",
	} {
		t.Run(command, func(t *testing.T) {
			if _, err := w.Do(command); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want …%s…", err, want)
			}
		})
	}
	if _, err := New(t.TempDir(), 5); err == nil {
		t.Error("there is no layout 5")
	}
	if r, err := w.Do("open 1"); err != nil || len(r.Held) != 1 {
		t.Errorf("open: %+v, %v", r, err)
	}
	if _, err := w.Do("free 1 dram 5"); err == nil {
		t.Error("freed what it does not hold")
	}
	if r, err := w.Do("alloc 1 l1 2K"); err != nil || r.Held[1]["l1"] != 2048 {
		t.Errorf("alloc: %+v, %v", r, err)
	}
	w.CloseAll()
	if len(w.Held()) != 0 {
		t.Error("holds something after close")
	}
}

// The program itself: a script, then hold until it is asked to end.
func TestMainHolds(t *testing.T) {
	cleanShm(t)
	cmd := exec.Command("/proc/self/exe", "--layout=4", "-e", "name held; open 1; alloc 1 dram 3K")
	cmd.Args[0] = childName
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var r Reply
	if err := json.NewDecoder(out).Decode(&r); err != nil || r.Held[1]["dram"] != 3072 || r.PID != cmd.Process.Pid {
		t.Fatalf("%+v, %v", r, err)
	}
	expect(t, readRegion(t, 1), 4, 1, 1, 3072)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	expect(t, readRegion(t, 1), 4, 0, 0, 0)
}
