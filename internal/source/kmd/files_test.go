package kmd

import (
	"runtime"
	"testing"
)

// TestFilesOpenedByReader: the first round keeps no file open, later ones all
// but the static ones; and the devices share a batch from the first one on.
func TestFilesOpenedByReader(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one batch
	tr := newTree(t)
	for i := range 3 {
		tr.add("bh", i, i, "0000:0"+string(rune('1'+i))+":00.0")
	}
	r := New(tr.root())
	defer r.Close()
	for round := range 3 {
		for _, f := range read(r).Found {
			if !f.Device.Temperature.Known() || !f.Device.Serial.Known() {
				t.Errorf("round %d: temperature %+v, serial number %+v", round, f.Device.Temperature, f.Device.Serial)
			}
		}
		for _, d := range r.devices {
			for i := range d.files {
				_, name := d.path(i)
				kept := round > 0 && !isStatic(i) && d.files[i].err == nil
				if d.files[i].fd > 0 != kept {
					t.Errorf("round %d: %s is open: %t, want %t", round, name, !kept, kept)
				}
			}
		}
		if len(r.batches) != 1 {
			t.Errorf("round %d: %d batches for three devices and one CPU", round, len(r.batches))
		}
	}
}

// TestDirChanges: a batch has room for all paths of a device.
func TestDirChanges(t *testing.T) {
	d := &device{}
	d.moveTo(0, "/sys/devices/pci0000:40/0000:41:00.0/tenstorrent/tenstorrent!0")
	d.dirs[inHwmon] = "/sys/devices/pci0000:40/0000:41:00.0/hwmon/hwmon0"
	changes, last := 0, ""
	for i := range numFiles {
		if dir, _ := d.path(i); dir != last {
			changes++
			last = dir
		}
	}
	if changes > dirChanges {
		t.Errorf("the directory changes %d times, there is room for %d", changes, dirChanges)
	}
}
