package track

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/lib/ledgerfile"
	"github.com/ttmon/ttmon/lib/libtest"
)

// Copies of a user's ledgers take up to that user's share of memory.
func TestTooMuchMemory(t *testing.T) {
	first, dir := driver(t)
	second, _ := driver(t, "TTMON_DIR="+dir)
	for _, d := range []*libtest.Driver{first, second} {
		do(t, d, "1", "list 77 0")
		for i := range 6 {
			do(t, d, "0", "alloc 1 %d 64", 4096*(i+1))
		}
	}
	whole := NewReader(Options{Dir: dir})
	defer whole.Close()
	all := whole.Read(nil)
	if len(all.Processes) != 2 {
		t.Fatalf("%+v", all)
	}
	need := int64(all.Processes[0].Ledger.Memory)
	r := NewReader(Options{Dir: dir, Memory: budget.Limit{PerUID: need, All: need + need/2}})
	defer r.Close()
	for range 2 {
		s := r.Read(nil)
		if len(s.Processes) != 1 || len(s.Failures) != 1 || !errors.Is(s.Failures[0].Err, ledgerfile.ErrTooLarge) {
			t.Fatalf("%d processes, failures %v", len(s.Processes), s.Failures)
		}
		if r.memory != need || r.users[os.Getuid()].memory != need {
			t.Errorf("%d bytes are booked, want %d", r.memory, need)
		}
	}
	first.Kill()
	second.Kill()
	for range 3 {
		r.Read(nil)
	}
	if len(r.files) > 0 && r.memory > need { // where the dead's are not removed
		t.Errorf("%d bytes are booked", r.memory)
	}
	wide := NewReader(Options{Dir: dir, Memory: budget.Limit{PerUID: 2 * need, All: 2 * need}})
	defer wide.Close()
	if s := wide.Read(nil); len(s.Failures) > 0 {
		t.Errorf("with room for both: %v", s.Failures)
	}
}

// forge writes a ledger into a folder, of a user, that names a process which
// does not keep it.
func forge(t *testing.T, dir string, image []byte, uid, pid int) {
	t.Helper()
	st, err := proc.ReadStat(hostfs.Root{}, pid)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	le.PutUint32(image[24:], uint32(pid))
	le.PutUint64(image[32:], st.Start)
	path := filepath.Join(dir, fmt.Sprintf("%s%d-0123456789abcdef", ledgerfile.Prefix, pid))
	if err := errors.Join(os.WriteFile(path, image, 0o600), os.Chown(path, uid, uid)); err != nil {
		t.Fatal(err)
	}
}

// A user speaks for no process of another: neither for one that maps nothing,
// nor by a file that the other has locked.
func TestForgedLedgers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	do(t, d, "0", "alloc 1 4096 64")
	path, err := d.Do("path")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("/bin/true")
	if err := dead.Start(); err != nil {
		t.Fatal(err)
	}
	defer dead.Wait() // a zombie until then: it maps nothing
	forged := t.TempDir()
	const other = 65534
	forge(t, forged, image, other, 1)
	forge(t, forged, image, other, os.Getpid())
	forge(t, forged, image, other, dead.Process.Pid)
	r := NewReader(Options{Dir: forged})
	defer r.Close()
	if s := r.Read(nil); len(s.Processes) > 0 || len(s.Ended) != 1 || len(s.Failures) != 2 {
		t.Errorf("believed: %+v", s)
	}

	// The live process has locked its ledger; the file becomes another's.
	if err := os.Chown(path, other, other); err != nil {
		t.Fatal(err)
	}
	own := NewReader(Options{Dir: dir})
	defer own.Close()
	s := own.Read(nil)
	var forgery *forgedError
	if len(s.Processes) > 0 || len(s.Failures) != 1 || !errors.As(s.Failures[0].Err, &forgery) {
		t.Errorf("%d processes, failures %v", len(s.Processes), s.Failures)
	}
	if err := os.Chown(path, os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	again := NewReader(Options{Dir: dir})
	defer again.Close()
	if s := again.Read(nil); len(s.Processes) != 1 || len(s.Failures) > 0 {
		t.Errorf("its own: %d processes, failures %v", len(s.Processes), s.Failures)
	}
}

func TestOwnerOfLedger(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	cmd := exec.Command("/bin/sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 60000, Gid: 60000}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	r := NewReader(Options{})
	defer r.Close()
	for uid, want := range map[int]bool{60000: true, 60001: false, 0: true} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if got := r.mayKeep(&file{uid: uid}, cmd.Process.Pid); got != want {
				t.Errorf("uid %d: %v", uid, got)
			}
		})
	}
}

// A user whose ledgers take long to read waits, and others do not.
func TestLedgersRest(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	r := NewReader(Options{Dir: dir, Memory: budget.Limit{PerUID: 1 << 30, All: 1 << 30}})
	defer r.Close()
	one(t, r)
	f := &file{uid: 60000, fd: -1}
	r.add(f)
	r.users[60000].read.Add(time.Hour, time.Now())
	if err := r.load(f); !errors.Is(err, errResting) {
		t.Errorf("a user that took an hour: %v", err)
	}
	delete(r.files, f.ID)
	delete(r.users, 60000)
	do(t, d, "0", "alloc 1 4096 64")
	if p := one(t, r); len(p.Ledger.Blocks) != 1 {
		t.Errorf("%d blocks", len(p.Ledger.Blocks))
	}
}

// Of a process that ends while its user's ledgers wait, the last ledger is reported when
// it could be read, not the one from before, also where the file is gone by then.
func TestEndWhileResting(t *testing.T) {
	for name, end := range map[string]func(*libtest.Driver) error{
		"in good order": (*libtest.Driver).End,
		"killed":        func(d *libtest.Driver) error { d.Kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			d, dir := driver(t)
			do(t, d, "1", "list 77 0")
			do(t, d, "0", "alloc 1 4096 64")
			r := NewReader(Options{Dir: dir, Memory: budget.Limit{PerUID: 1 << 30, All: 1 << 30}})
			defer r.Close()
			one(t, r)
			for _, f := range r.files {
				f.uid = 60000
			}
			r.users[60000] = r.users[os.Getuid()]
			r.users[60000].read.Add(time.Hour, time.Now())
			do(t, d, "0", "alloc 1 8192 64")
			if err := end(d); err != nil {
				t.Fatal(err)
			}
			if s := r.Read(nil); len(s.Exited)+len(s.Processes)+len(s.Failures) > 0 {
				t.Fatalf("before it was read: %+v", s)
			}
			r.users[60000].read = budget.Meter{Part: readPart}
			s := r.Read(nil)
			if len(s.Exited) != 1 {
				t.Fatalf("after it was read: %+v", s)
			}
			total := uint64(0)
			for _, l := range s.Exited[0].Ledger.Lists {
				total += l.Total.Blocks
			}
			if total != 2 {
				t.Errorf("%d allocations are known, it made 2", total)
			}
			if s := r.Read(nil); len(s.Exited) > 0 {
				t.Errorf("reported again: %+v", s)
			}
		})
	}
}
