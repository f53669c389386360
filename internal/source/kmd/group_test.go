package kmd

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"

	"github.com/ttmon/ttmon/internal/lab/fusetest"
	"github.com/ttmon/ttmon/internal/model"
)

// TestBlockedChips has all chips of a host but one hold their readers up, and a
// deadline so short that it is over before anything can have been noticed: as
// on a machine that is busy with something else. The one that is well must not
// count as hung.
func TestBlockedChips(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // all devices in one group
	tr := newTree(t)
	release := make(chan struct{})
	const devices, well = 6, 3
	for i := range devices {
		b := tr.add("bh", i, i, "0000:0"+string(rune('1'+i))+":00.0")
		if i != well {
			b.block("tt_heartbeat", release)
		}
	}
	defer close(release)
	for range 4 { // the order in which devices are read is not fixed
		r := New(tr.root())
		r.grace = time.Minute
		for i, f := range r.Read(time.Now().Add(time.Millisecond)).Found {
			want := model.StateHung
			if i == well {
				want = model.StateOK
			}
			if f.Device.State != want {
				t.Errorf("device %d is %s (%+v), want %s", i, f.Device.State, f.Device.StateReason, want)
			}
		}
		r.Close()
	}
}

// A reader that still waits for a chip at the deadline reads nothing more: it may
// be a reset that it waits for, and the rest of the files would be read in the
// middle of it. No signal ends the wait itself, of FUSE as of the driver.
func TestDeadlineEndsReaders(t *testing.T) {
	tr := newTree(t)
	first, second := make(chan struct{}), make(chan struct{})
	defer close(second)
	tr.add("bh", 0, 0, "0000:01:00.0").blockAll(map[string]<-chan struct{}{"tt_heartbeat": first, "tt_arcclk": second})
	before := len(runningChildren(t))
	r := New(tr.root())
	defer r.Close()
	waiting := 0
	for timeout := time.Millisecond; waiting == 0 && timeout < 10*time.Second; timeout *= 2 {
		r.Read(time.Now().Add(timeout)) // one that is late to start reads nothing
		waiting = len(runningChildren(t)) - before
	}
	if waiting != 1 {
		t.Fatalf("%d readers wait, want one", waiting)
	}
	close(first)
	for end := time.Now().Add(time.Minute); len(runningChildren(t)) > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the reader still waits")
		}
	}
}

// runningChildren are the processes that this one has started and that have not ended.
func runningChildren(t *testing.T) (pids []string) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Fatal("no lists of children", err)
	}
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for pid := range strings.FieldsSeq(string(b)) {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			if err == nil && !strings.Contains(string(stat), ") Z ") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// block serves the class directory through FUSE, with a file whose reads are
// answered only after release.
func (b *card) block(name string, release <-chan struct{}) {
	b.t.Helper()
	b.blockAll(map[string]<-chan struct{}{name: release})
}

// blockAll is block for several files.
func (b *card) blockAll(release map[string]<-chan struct{}) {
	b.t.Helper()
	dir := b.dir + b.class
	files := map[string]fs.InodeEmbedder{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				b.t.Fatal(err)
			}
			f := &fusetest.File{Text: string(text)}
			if wait := release[e.Name()]; wait != nil {
				f.Release = wait
			}
			files[e.Name()] = f
		}
	}
	fusetest.Mount(b.t, dir, files)
}

// TestSlowFile: one file that takes long costs its own value, and what comes
// behind it, not the whole device. Only a read that the next sweep finds stuck
// as well makes the chip hung.
func TestSlowFile(t *testing.T) {
	tr := newTree(t)
	release := make(chan struct{})
	b := tr.add("bh", 0, 0, "0000:01:00.0")
	b.block("tt_arcclk", release)
	r := New(tr.root())
	r.grace = time.Minute
	defer r.Close()
	read := func() model.Device { return r.Read(time.Now().Add(100 * time.Millisecond)).Found[0].Device }
	d := read()
	if d.State != model.StateOK || d.StateReason.Cause != model.ReadSlow || d.StateReason.File != "tt_arcclk" {
		t.Fatalf("after one slow file the device is %s: %+v", d.State, d.StateReason)
	}
	if !d.Heartbeat.Known() || !d.AICLK.Known() || !d.Temperature.Known() && d.Temperature.Status != model.Pending {
		t.Errorf("what was read is lost: heartbeat %+v, AICLK %+v, temperature %+v", d.Heartbeat, d.AICLK, d.Temperature)
	}
	if d.ARCCLK.Status != model.Pending {
		t.Errorf("what was not read is %+v", d.ARCCLK)
	}
	for d.State != model.StateHung { // until the read has taken long enough
		time.Sleep(50 * time.Millisecond)
		d = read()
	}
	if d.StateReason.Cause != model.ReadBlocked || d.AICLK.Status != model.Hung {
		t.Errorf("hung: %+v, AICLK %+v", d.StateReason, d.AICLK)
	}
	close(release)
	for d.State != model.StateOK {
		time.Sleep(10 * time.Millisecond)
		d = read()
	}
}
