package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// An environment that could not be read once is read the next time: without it,
// what a process reports would be of another chip.
func TestVisibleDevicesReadAgain(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "proc", "42")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("stat", "42 (train) S"+strings.Repeat(" 0", 18)+" 777"+strings.Repeat(" 0", 30)+"\n")
	put("status", "Name:\ttrain\nTgid:\t42\nUid:\t1000\t1000\t1000\t1000\n")
	r := &reports{processes: proc.New(hostfs.At(root))}
	id := model.ProcessID{PID: 42, StartTicks: 777}
	if v, ok := r.visibleDevices(id); ok {
		t.Fatalf("%q, though there is no environment to read", v)
	}
	put("environ", "A=1\x00TT_VISIBLE_DEVICES=3\x00")
	if v, ok := r.visibleDevices(id); v != "3" || !ok {
		t.Errorf("%q, %v; want 3", v, ok)
	}
	if v, ok := r.visibleDevices(model.ProcessID{PID: 42, StartTicks: 778}); ok {
		t.Errorf("%q of a process that has ended", v)
	}
}

// What was sent before a snapshot is made is in it, also where it was read late.
func TestSnapshotHasWhatWasSent(t *testing.T) {
	l := ledger.New(ledger.Options{})
	r := &reports{
		ledger: l, processes: proc.New(hostfs.At(t.TempDir())),
		since: func() allocsock.Since { return allocsock.Since{} },
		receive: func() {
			p := l.Open(ledger.Info{ProcessID: model.ProcessID{PID: 42, StartTicks: 777}}, time.Now())
			l.Apply(p, []ledger.Event{{Op: ledger.Alloc, ID: 1, Size: 4096}}, time.Now())
		},
	}
	if set := r.Claims(); len(set.Held) != 1 || !set.Held[0].Bytes[model.DRAM].Exactly(4096) {
		t.Errorf("%+v", set.Held)
	}
}
