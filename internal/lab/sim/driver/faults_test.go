package driver

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/chip"
	"github.com/ttmon/ttmon/internal/lab/sim/tree"
)

const class0 = "/sys/class/tenstorrent/tenstorrent!0/"

// until waits for something that must come true.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// answer is what an asynchronous read gave.
type answer struct {
	text string
	e    syscall.Errno
}

// reading starts a read and waits until it is held up.
func reading(t *testing.T, d *Driver, path string) <-chan answer {
	t.Helper()
	f := lookUp(d, path).(*tree.File)
	ch := make(chan answer, 1)
	go func() {
		b, e := f.Show(tree.Caller{})
		ch <- answer{string(b), e}
	}()
	until(t, "the read to be held up", func() bool { return d.devices[0].Waiting() == 1 })
	return ch
}

func TestResetPhases(t *testing.T) {
	d := newDriver(t, "p150a", "2.10.0", "", Surroundings{})
	defer d.Close()
	dev := d.devices[0]
	if err := dev.Reset(time.Hour, Forever, false); err != nil {
		t.Fatal(err)
	}
	held := reading(t, d, class0+"tt_aiclk")
	for _, path := range []string{class0 + "device/vendor", "/sys/class/hwmon/hwmon3/temp1_label", "/proc/driver/tenstorrent/0/pids"} {
		if _, e := show(t, d, path); e != 0 {
			t.Errorf("%s while a reset executes: %v; it does not touch the chip", path, e)
		}
	}
	dev.mu.Lock()
	dev.setPhase(window)
	dev.mu.Unlock()
	if got := <-held; got.e != syscall.ENODATA {
		t.Errorf("a read held up by the reset gives %v in the window, want ENODATA", got)
	}
	before, _ := dev.chip.Word(chip.Heartbeat)
	if err := dev.PostReset(false); err != nil {
		t.Fatal(err)
	}
	if text, e := show(t, d, class0+"tt_aiclk"); text != "800\n" || e != 0 {
		t.Errorf("after the reset: %q %v", text, e)
	}
	if after, _ := dev.chip.Word(chip.Heartbeat); after >= before {
		t.Errorf("heartbeat went from %d to %d over a reset", before, after)
	}
	if err := dev.PostReset(false); err == nil {
		t.Error("a second post-reset succeeded")
	}
}

func TestBlockAndRelease(t *testing.T) {
	d := newDriver(t, "n150", "2.10.0", "", Surroundings{})
	defer d.Close()
	dev := d.devices[0]
	for _, tt := range []struct{ what, file string }{
		{"tt_axiclk", class0 + "tt_axiclk"},
		{"telemetry", "/sys/class/hwmon/hwmon3/temp1_input"},
		{"counters", class0 + "pcie_perf_counters/mst_rd_data_word_received0"},
		{"everything", class0 + "device/vendor"},
		{"pids", "/proc/driver/tenstorrent/0/pids"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if err := dev.Block(tt.what, Forever); err != nil {
				t.Fatal(err)
			}
			if err := dev.Block(tt.what, Forever); err == nil {
				t.Errorf("blocking %s twice succeeded", tt.what)
			}
			if got := dev.Blocked(); !slices.Equal(got, []string{tt.what}) {
				t.Errorf("blocked: %v", got)
			}
			held := reading(t, d, tt.file)
			if !dev.Unblock(tt.what) || dev.Unblock(tt.what) {
				t.Errorf("releasing %s", tt.what)
			}
			if got := <-held; got.e != 0 {
				t.Errorf("%s after its release: %v", tt.file, got.e)
			}
		})
	}
}

// TestReleasedByTheEnd: who is held up when the device goes, or the host,
// finds it gone.
func TestReleasedByTheEnd(t *testing.T) {
	for name, end := range map[string]func(*Driver){
		"unplugged": func(d *Driver) { d.devices[0].Unplug() },
		"closed":    func(d *Driver) { d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t, "n150", "2.10.0", "", Surroundings{})
			if err := d.devices[0].Block("telemetry", Forever); err != nil {
				t.Fatal(err)
			}
			held := reading(t, d, class0+"tt_aiclk")
			end(d)
			if got := <-held; got.e != syscall.ENODEV {
				t.Errorf("%v, want ENODEV", got)
			}
			d.Close()
		})
	}
}

func TestPlugConflicts(t *testing.T) {
	d := newDriver(t, "2xn150", "2.10.0", "", Surroundings{Hwmon: []int{12}})
	defer d.Close()
	a, b := d.devices[0], d.devices[1]
	if err := a.Plug(-1, -1, 0); err == nil {
		t.Error("plugging what is plugged in succeeded")
	}
	changes := 0
	d.OnChange = func() { changes++ }
	if err := a.Unplug(); err != nil {
		t.Fatal(err)
	}
	if err := a.Unplug(); err == nil {
		t.Error("pulling it twice succeeded")
	}
	for _, tt := range []struct {
		index, hwmon int
		want         string
	}{
		{1, -1, b.BDF()}, {-1, b.hwmon, b.BDF()}, {-1, 12, "host's own"},
	} {
		t.Run(fmt.Sprintf("index %d, hwmon %d", tt.index, tt.hwmon), func(t *testing.T) {
			if err := a.Plug(tt.index, tt.hwmon, 0); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("plugging as %d, hwmon%d: %v, want an error with %q", tt.index, tt.hwmon, err, tt.want)
			}
		})
	}
	if err := a.Plug(-1, -1, 0); err != nil {
		t.Fatal(err)
	}
	if a.index != 0 || changes == 0 {
		t.Errorf("back as %d, %d changes told; want the lowest free index", a.index, changes)
	}
}

func TestReloadIsRefusedWhileInUse(t *testing.T) {
	d := newDriver(t, "n150", "2.10.0", "", Surroundings{})
	defer d.Close()
	node := lookUp(d, "/dev/tenstorrent/0").(*tree.File)
	opened, e := node.OnOpen(tree.Caller{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	if err := d.Reload(Version{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("unloading with an open node: %v", err)
	}
	opened.Release()
	if err := d.Reload(Version{}); err != nil {
		t.Fatal(err)
	}
	if d.Loaded() || slices.Contains(d.Places(), "/dev/tenstorrent") || slices.Contains(d.Places(), "/sys/module/tenstorrent") {
		t.Errorf("places without the module: %v", d.Places())
	}
	old, err := ParseVersion("2.4.0")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(old); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(d.Places(), "/proc/driver/tenstorrent") || !slices.Contains(d.Places(), "/dev/tenstorrent") {
		t.Errorf("places of 2.4: %v", d.Places())
	}
}

// TestNumberInPids is the namespace rule on openers made by hand.
func TestNumberInPids(t *testing.T) {
	o := &Opener{PID: 500, numbers: []nsPID{{1, 500}, {2, 30}, {3, 1}}}
	for _, tt := range []struct {
		translate bool
		reader    uint64
		want      int
	}{
		{true, 1, 500}, {true, 2, 30}, {true, 3, 1}, {true, 4, 0}, {false, 1, 1}, {false, 4, 1},
	} {
		t.Run(fmt.Sprintf("translate %v, reader %d", tt.translate, tt.reader), func(t *testing.T) {
			if got := o.number(tt.translate, tt.reader); got != tt.want {
				t.Errorf("translate %v, reader in %d: %d, want %d", tt.translate, tt.reader, got, tt.want)
			}
		})
	}
	if got := (&Opener{PID: 0, fixed: true}).number(true, 1); got != 0 {
		t.Errorf("made-up opener prints %d", got)
	}
}

func TestLoadsAddUp(t *testing.T) {
	d := newDriver(t, "n150", "2.10.0", "", Surroundings{})
	defer d.Close()
	dev := d.devices[0]
	dev.SetLoad(0.3)
	d.SetWork(0, 0.5)
	if got := dev.chip.Load(); got != 0.8 {
		t.Errorf("load %v, want the sum of both", got)
	}
	d.SetWork(0, 5)
	if got := dev.chip.Load(); got != 1 {
		t.Errorf("load %v, want no more than 1", got)
	}
	d.SetWork(0, 0)
	if got := dev.chip.Load(); got != 0.3 {
		t.Errorf("load %v after the work, want 0.3", got)
	}
}

func TestFrozenClock(t *testing.T) {
	c := clock{start: time.Now().Add(-time.Hour), frozen: true}
	if n := c.now(); n.Physics != 0 || n.Beat < time.Hour {
		t.Errorf("frozen from the start: %+v", n)
	}
	c.advance(time.Minute)
	if n := c.now(); n.Physics != time.Minute || n.Beat < time.Hour+time.Minute {
		t.Errorf("advanced: %+v", n)
	}
	c.freeze(false)
	a := c.now()
	if a.Physics < time.Minute || a.Physics > 2*time.Minute {
		t.Errorf("thawed: %+v; it must go on from where it stood", a)
	}
	c.freeze(true)
	b, again := c.now(), c.now()
	if b.Physics < a.Physics || again.Physics != b.Physics {
		t.Errorf("frozen again: %+v then %+v", b, again)
	}
}
