package proc

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestDeviceInLink(t *testing.T) {
	for link, want := range map[string]int{
		"/dev/tenstorrent/0":                               0,
		"/dev/tenstorrent/31":                              31,
		"/dev/tenstorrent/3 (deleted)":                     3,
		"/var/lib/docker/x/merged/dev/tenstorrent/7":       7,
		"/dev/tenstorrent/":                                -1,
		"/dev/tenstorrent/by-id/wormhole-AABBCCDD11223344": -1,
		"/dev/tenstorrent/00":                              -1,
		"/dev/tenstorrent/1x":                              -1,
		"/dev/tenstorrent/-1":                              -1,
		"/dev/tenstorrent/99999999999":                     -1,
		"/dev/tenstorrent/1 (deleted) (deleted)":           -1,
		"/dev/tenstorrent":                                 -1,
		"tenstorrent/1":                                    -1,
		"/xdev/tenstorrent/1":                              -1,
		"/dev/tenstorrent2/1":                              -1,
		"socket:[1]":                                       -1,
		"":                                                 -1,
	} {
		t.Run(link, func(t *testing.T) {
			if device, ok := deviceInLink([]byte(link)); ok != (want >= 0) || ok && device != want {
				t.Errorf("%q: %d, %v; want %d", link, device, ok, want)
			}
		})
	}
}

func FuzzDeviceInLink(f *testing.F) {
	f.Add([]byte("/dev/tenstorrent/0 (deleted)"))
	f.Add([]byte("/dev/tenstorrent/by-id/x"))
	f.Fuzz(func(t *testing.T, link []byte) {
		if device, ok := deviceInLink(link); ok {
			if want := nodeDir + strconv.Itoa(device); !strings.HasSuffix(strings.TrimSuffix(string(link), " (deleted)"), want) {
				t.Errorf("%q was parsed as device %d", link, device)
			}
		}
	})
}

func scan(t *testing.T, r *Reader) holderScan {
	t.Helper()
	s, err := holders(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pidsOf lists the holders of a device and their numbers of descriptors.
func pidsOf(s holderScan, device int) map[int]int {
	out := map[int]int{}
	for _, h := range s.Holders[device] {
		out[h.PID] += len(h.FDs)
	}
	return out
}

func wantHolders(t *testing.T, s holderScan, device int, want map[int]int) {
	t.Helper()
	if diff := cmp.Diff(want, pidsOf(s, device)); diff != "" {
		t.Errorf("holders of device %d differ (-want +got):\n%s", device, diff)
	}
}

func TestHoldersFollowChanges(t *testing.T) {
	tr := newTree(t, 2)
	c := start(t, nil, "hold", os.DevNull)
	c.line()
	tr.show(c.pid)
	r := tr.reader()
	wantHolders(t, scan(t, r), 0, map[int]int{})
	c.send("open " + tr.node(0))
	wantHolders(t, scan(t, r), 0, map[int]int{c.pid: 1})
	c.send("dup 1")
	c.send("open " + tr.node(1))
	s := scan(t, r)
	wantHolders(t, s, 0, map[int]int{c.pid: 2})
	wantHolders(t, s, 1, map[int]int{c.pid: 1})
	c.send("close 2")
	s = scan(t, r)
	wantHolders(t, s, 0, map[int]int{c.pid: 2})
	wantHolders(t, s, 1, map[int]int{})
	c.stop()
	os.Remove(filepath.Join(tr.dir, "proc", strconv.Itoa(c.pid)))
	s = scan(t, r)
	wantHolders(t, s, 0, map[int]int{})
	if n := len(r.descriptors.byPID); n != 0 {
		t.Errorf("%d tables of dead processes are kept", n)
	}
}

// A process with more descriptors than one sweep reads: it takes several, and
// until then it is said that something may be missing. Others are not affected.
func TestHoldersOfALongTable(t *testing.T) {
	tr := newTree(t, 1)
	long, other := start(t, nil, "hold", os.DevNull), start(t, nil, "hold", tr.node(0))
	long.line()
	other.line()
	for range 40 {
		long.send("open " + os.DevNull)
	}
	long.send("open " + tr.node(0))
	tr.show(long.pid)
	r := tr.reader()
	r.descriptors.limit = 10
	if os.Getuid() == 0 {
		r.descriptors.limit = 3 // root has four times that
	}
	sweeps := 0
	for s := scan(t, r); s.Skipped > 0; s = scan(t, r) {
		if sweeps++; sweeps > 20 {
			t.Fatal("the end is never reached")
		}
	}
	if sweeps < 2 {
		t.Errorf("all was scanned in %d sweeps", sweeps)
	}
	wantHolders(t, scan(t, r), 0, map[int]int{long.pid: 1})

	// One that changes is scanned again; its last result is kept meanwhile.
	long.send("open " + os.DevNull)
	s := scan(t, r)
	if r.descriptors.sized && s.Skipped != 1 {
		t.Errorf("%d skipped", s.Skipped)
	}
	wantHolders(t, s, 0, map[int]int{long.pid: 1})
	long.send("close 41")
	for s = scan(t, r); s.Skipped > 0; s = scan(t, r) {
	}
	wantHolders(t, s, 0, map[int]int{})
}

// One descriptor takes another one's place: the number stays the same.
func TestHoldersSameCount(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", os.DevNull)
	c.line()
	tr.show(c.pid)
	r := tr.reader()
	scan(t, r)
	if !r.descriptors.sized {
		t.Skip("needs Linux 6.2: /proc/<pid>/fd does not tell the number of descriptors")
	}
	c.send("close 0")
	c.send("open " + tr.node(0))
	wantHolders(t, scan(t, r), 0, map[int]int{}) // the price of being cheap,
	if got, fds := check(r, c.pid, 0); got != Held || len(fds) != 1 {
		t.Errorf("Check believed the count: %v, %v", got, fds) // not paid by Check,
	}
	c.send("close 1")
	c.send("open " + os.DevNull)
	wantHolders(t, scan(t, r), 0, map[int]int{}) // nor for a holder who stops to be one,
	c.send("close 2")
	c.send("open " + tr.node(0))
	r.descriptors.byPID[c.pid].due = r.boot
	wantHolders(t, scan(t, r), 0, map[int]int{c.pid: 1}) // and only until the next full look.
}

// Before Linux 6.2 the number is not told, and every scan is a full one.
func TestHoldersWithoutCount(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", os.DevNull)
	c.line()
	tr.show(c.pid)
	r := tr.reader()
	r.descriptors.sized = false
	wantHolders(t, scan(t, r), 0, map[int]int{})
	c.send("close 0")
	c.send("open " + tr.node(0))
	wantHolders(t, scan(t, r), 0, map[int]int{c.pid: 1})
}

func TestHoldersOutOfTime(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	tr.show(c.pid)
	r := tr.reader()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := holders(over, r)
	if err != nil || s.Skipped != 1 || s.Complete() || len(s.Doubts()) == 0 || len(s.Holders) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	wantHolders(t, scan(t, r), 0, map[int]int{c.pid: 1})
	c.send("dup 0")
	s, _ = holders(over, r) // what was known stands
	wantHolders(t, s, 0, map[int]int{c.pid: 1})
	wantHolders(t, scan(t, r), 0, map[int]int{c.pid: 2})
}

// The driver's nodes are known by their number, whatever their name. Here the
// "driver" is the kernel's own with major 1: device 5 is /dev/zero.
func TestHoldersByNumber(t *testing.T) {
	needRoot(t)
	tr := newTree(t, 0)
	tr.write("proc/devices", "Character devices:\n  1 tenstorrent\n  5 ttyx\n\nBlock devices:\n  9 tenstorrent\n")
	if err := unix.Mknod(tr.node(5), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Skip("needs mknod: ", err)
	}
	tr.write("elsewhere/dev/tenstorrent/5", "")
	lookalike := filepath.Join(tr.dir, "elsewhere/dev/tenstorrent/5")
	named := start(t, nil, "hold", tr.node(5))
	renamed := start(t, nil, "hold", "/dev/zero", "/dev/random")
	wrong := start(t, nil, "hold", lookalike)
	for _, c := range []*child{named, renamed, wrong} {
		c.line()
		tr.show(c.pid)
	}
	r := tr.reader()
	s := scan(t, r)
	wantHolders(t, s, 5, map[int]int{named.pid: 1, renamed.pid: 1})
	wantHolders(t, s, 8, map[int]int{renamed.pid: 1}) // 1:8 is /dev/random
	if err := os.Remove(tr.node(5)); err != nil {
		t.Fatal(err)
	}
	wantHolders(t, scan(t, tr.reader()), 5, map[int]int{named.pid: 1, renamed.pid: 1})
}

// Two simulated hosts, both with a device 0, are told apart.
func TestHoldersOfAnotherTree(t *testing.T) {
	tr, other := newTree(t, 1), newTree(t, 1)
	a, b := start(t, nil, "hold", tr.node(0)), start(t, nil, "hold", other.node(0))
	a.line()
	b.line()
	tr.show(a.pid, b.pid)
	r := tr.reader()
	wantHolders(t, scan(t, r), 0, map[int]int{a.pid: 1})
	// The node goes: the name is all there is of device 0.
	os.Remove(tr.node(0))
	wantHolders(t, scan(t, tr.reader()), 0, map[int]int{a.pid: 1, b.pid: 1})
	// Another one replaces it, which no process holds.
	tr.write("dev/tenstorrent/0", "")
	wantHolders(t, scan(t, r), 0, map[int]int{})
}

// A process keeps running when its first thread exits, and keeps its
// descriptors.
func TestHoldersWithoutFirstThread(t *testing.T) {
	tr := newTree(t, 1)
	c := start(t, nil, "hold", tr.node(0))
	c.line()
	tr.show(c.pid)
	if got := c.send("leave"); got != "done" {
		t.Fatal(got)
	}
	r := tr.reader()
	for { // until the thread is gone
		r.StartSweep()
		p, err := r.Process(c.pid)
		if err != nil {
			t.Fatal(err)
		}
		if p.stat.State == 'Z' {
			break
		}
	}
	wantHolders(t, scan(t, r), 0, map[int]int{c.pid: 1})
	if got, _ := check(r, c.pid, 0); got != Held {
		t.Errorf("Check says %v", got)
	}
	wantUses(t, resolve(t, r, "2.10.0", listed(0, c.pid)), use{c.pid, "running", 0, 1, false})
}

func TestCheck(t *testing.T) {
	tr := newTree(t, 2)
	c := start(t, nil, "hold", tr.node(0), tr.node(0))
	c.line()
	tr.show(c.pid)
	r := tr.reader()
	if got, fds := check(r, c.pid, 0); got != Held || len(fds) != 2 {
		t.Errorf("device 0: %v, %v", got, fds)
	}
	if got, fds := check(r, c.pid, 1); got != NotHeld || fds != nil {
		t.Errorf("device 1: %v, %v", got, fds)
	}
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	waitForZombie(t, c.pid)
	if got, _ := check(r, c.pid, 0); got != NoSuchProcess {
		t.Errorf("a zombie: %v", got)
	}
	_ = c.cmd.Wait()
	if got, _ := check(r, c.pid, 0); got != NoSuchProcess {
		t.Errorf("a dead process: %v", got)
	}
}

// We are not a user of the device, even if a test holds it.
func TestHoldersWithoutUs(t *testing.T) {
	tr := newTree(t, 1)
	f, err := os.Open(tr.node(0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tr.show(os.Getpid())
	wantHolders(t, scan(t, tr.reader()), 0, map[int]int{})
}
