package track

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/lab/fusetest"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// withShm starts a process that sees a folder as its /dev/shm.
func withShm(t *testing.T, dir string) model.ProcessID {
	t.Helper()
	cmd := exec.Command("sh", "-c", `mount --bind "$0" /dev/shm && echo ok && exec sleep 1000`, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no mount namespace: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if n, err := out.Read(make([]byte, 16)); n == 0 {
		t.Skipf("no mount in a namespace: %v", err)
	}
	return model.ProcessID{PID: cmd.Process.Pid}
}

// A folder is listed in every sweep, whichever process leads there.
func TestFoldersOfProcesses(t *testing.T) {
	root, err := os.MkdirTemp("/dev/shm", "root-*") // memory, as a process's /dev/shm is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	for _, dir := range []string{"dev/shm", "container/dev/shm", "proc/7", "proc/8"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	send := func(pid, where string) {
		t.Helper()
		link := filepath.Join(root, "proc", pid, "root")
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(root, where), link); err != nil {
			t.Fatal(err)
		}
	}
	put := func(where string) { // what cannot be read is told wherever it is found
		t.Helper()
		path := filepath.Join(root, where, "dev/shm", ledgerfile.Prefix+where)
		if err := os.WriteFile(path, []byte(strings.Repeat("garbage ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	send("7", "container")
	send("8", "container")
	users := []model.ProcessID{{PID: 7, StartTicks: 1}, {PID: 8, StartTicks: 1}}
	r := NewReader(Options{Root: hostfs.At(root)})
	defer r.Close()
	found := func() int { return len(r.Read(users).Failures) }
	if n := found(); n != 0 {
		t.Fatalf("%d files in empty folders", n)
	}
	if put("container"); found() != 1 {
		t.Error("a new file in a known folder is not found")
	}
}

// A process may have anything mounted where its ledgers should be. What is not
// memory is not read: its files may not answer, even if its folder does.
func TestFolderThatMayNotAnswer(t *testing.T) {
	never := make(chan struct{})
	dir := t.TempDir()
	name := ledgerfile.Prefix + "1-0123456789abcdef"
	fusetest.Mount(t, dir, map[string]fs.InodeEmbedder{name: &fusetest.File{Text: "TTMONLDG", Release: never}})
	t.Cleanup(func() { close(never) }) // before it is unmounted
	r := NewReader(Options{Dir: t.TempDir(), Guard: proc.NewGuard(time.Minute)})
	defer r.Close()
	if s := r.Read([]model.ProcessID{withShm(t, dir)}); len(s.Processes)+len(s.Ended)+len(s.Failures) > 0 {
		t.Errorf("found %+v", s)
	}
}

// The ledgers in a container's own /dev/shm are found, and those without a
// writer are removed there.
func TestFolderOfAContainer(t *testing.T) {
	own := t.TempDir()
	if err := unix.Mount("tmpfs", own, "tmpfs", 0, ""); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(own, unix.MNT_DETACH) })
	d, _ := driver(t, "TTMON_DIR="+own)
	do(t, d, "1", "list 77 0")
	users := []model.ProcessID{withShm(t, own), withShm(t, own)}
	r := NewReader(Options{Dir: t.TempDir(), Guard: proc.NewGuard(time.Minute), Remove: true, All: true})
	defer r.Close()
	if s := r.Read(users); len(s.Processes) != 1 || s.Processes[0].PID != d.Cmd.Process.Pid || len(s.Failures) > 0 {
		t.Fatalf("found %+v", s)
	}
	d.Kill()
	if s := r.Read(users); len(s.Ended) != 1 || len(s.Failures) > 0 {
		t.Errorf("after its end: %+v", s)
	}
	if left, _ := filepath.Glob(filepath.Join(own, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// No user has more ledgers read than allowed, and they are found again when there
// is room.
func TestTooManyLedgers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	dir := t.TempDir()
	maxPerUser := int(fileLimit().PerUID)
	ledger := func(i int) string {
		return filepath.Join(dir, fmt.Sprintf("%s1-%016x", ledgerfile.Prefix, i))
	}
	for i := range maxPerUser + 2*maxFailures {
		if err := errors.Join(os.WriteFile(ledger(i), nil, 0o600), os.Chown(ledger(i), 60000, 60000)); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(Options{Dir: dir})
	defer r.Close()
	s := r.Read(nil)
	if len(r.files) != maxPerUser || len(s.Failures) != maxFailures || !errors.Is(s.Failures[0].Err, errTooMany) {
		t.Fatalf("%d are open, %d failures, the first: %+v", len(r.files), len(s.Failures), s.Failures[0])
	}
	for i := range maxPerUser + 2*maxFailures {
		if err := os.Remove(ledger(i)); err != nil {
			t.Fatal(err)
		}
	}
	r.Read(nil)
	if len(r.files)+len(r.users) > 0 {
		t.Errorf("%d are open, of %d users", len(r.files), len(r.users))
	}
}

// A process that does not let anybody see what it maps is believed to keep its
// ledger, and is not waited for.
func TestMapsThatDoNotAnswer(t *testing.T) {
	d, dir := driver(t)
	do(t, d, "1", "list 77 0")
	path, err := d.Do("path")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A ledger that names the process, and that it neither locks nor maps.
	other := filepath.Join(dir, ledgerfile.Prefix+"1-0123456789abcdef")
	if err := os.WriteFile(other, image, 0o600); err != nil {
		t.Fatal(err)
	}
	first := NewReader(Options{Dir: dir, Guard: proc.NewGuard(time.Minute)})
	defer first.Close()
	own := one(t, first)
	guard := proc.NewGuard(time.Millisecond)
	never := make(chan struct{})
	defer close(never)
	if _, err := guard.Run(model.ProcessID{PID: own.PID, StartTicks: own.Start}, func() { <-never }); !errors.Is(err, hostfs.ErrTimeout) {
		t.Fatal(err)
	}
	r := NewReader(Options{Dir: dir, Guard: guard})
	defer r.Close()
	if s := r.Read(nil); len(s.Processes) != 2 || len(s.Ended) > 0 {
		t.Errorf("%d processes, %d ended", len(s.Processes), len(s.Ended))
	}
}
