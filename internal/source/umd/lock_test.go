package umd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// lockBytes lays out a lock file; a negative pid leaves UMD's fields out.
func lockBytes(mutex int, futex, tid uint32, pid int32) []byte {
	b := make([]byte, mutex)
	binary.LittleEndian.PutUint32(b, futex)
	b = binary.LittleEndian.AppendUint64(b, lockMagic)
	if pid >= 0 {
		b = binary.LittleEndian.AppendUint32(b, tid)
		b = binary.LittleEndian.AppendUint32(b, uint32(pid))
	}
	return b
}

const x86, arm = 40, 48

func TestParseLock(t *testing.T) {
	free := Lock{Held: model.Value(false)}
	held := func(tid, pid int) Lock { return Lock{Held: model.Value(true), TID: tid, PID: model.Value(pid)} }
	heldBy := func(tid int, s model.Status) Lock {
		return Lock{Held: model.Value(true), TID: tid, PID: model.Missing[int](s, "")}
	}
	missing := func(s model.Status) Lock { return Lock{Held: model.Missing[bool](s, "")} }
	for name, c := range map[string]struct {
		file []byte
		want Lock
	}{
		"free":                         {lockBytes(x86, 0, 0, 0), free},
		"free, old owner left":         {lockBytes(x86, 0, 4242, 4242), free},
		"held":                         {lockBytes(x86, 4243, 4243, 4242), held(4243, 4242)},
		"held, others wait":            {lockBytes(x86, 0x80000000|4243, 4243, 4242), held(4243, 4242)},
		"aarch64, held":                {lockBytes(arm, 4243, 4243, 4242), held(4243, 4242)},
		"aarch64, free":                {lockBytes(arm, 0, 1, 1), free},
		"owner died, pid left":         {lockBytes(x86, ownerDied, 4243, 4242), Lock{Held: model.Value(false), OwnerDied: true}},
		"owner died, others wait":      {lockBytes(x86, 0x80000000|ownerDied, 1, 1), Lock{Held: model.Value(false), OwnerDied: true}},
		"taken over from a dead owner": {lockBytes(x86, ownerDied|77, 77, 76), held(77, 76)},
		"taken, fields not written":    {lockBytes(x86, 77, 4243, 4242), heldBy(77, model.Pending)},
		"taken, fields still zero":     {lockBytes(x86, 77, 0, 0), heldBy(77, model.Pending)},
		"old UMD, held":                {lockBytes(x86, 77, 0, -1), heldBy(77, model.Absent)},
		"old UMD, free":                {lockBytes(x86, 0, 0, -1), free},
		"old UMD on aarch64, held":     {lockBytes(arm, 77, 0, -1), heldBy(77, model.Absent)},
		"empty":                        {nil, missing(model.Pending)},
		"not initialised":              {make([]byte, 56), missing(model.Pending)},
		"cut short":                    {lockBytes(x86, 77, 77, 77)[:44], missing(model.Unsupported)},
		"something else":               {[]byte("this is not a mutex, and not long enough for one either"), missing(model.Unsupported)},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseLock(c.file)
			if (got.Held.Why == "") == !got.Held.Known() {
				t.Errorf("%s: a reason must come with a missing answer, and only then: %+v", name, got)
			}
			got.Held.Why, got.PID.Why = "", ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		})
	}
}

func TestLockIndex(t *testing.T) {
	for name, want := range map[string]int{
		"TT_UMD_LOCK.CHIP_IN_USE_0_PCIe": 0, "TT_UMD_LOCK.CHIP_IN_USE_31_PCIe": 31, "TT_UMD_LOCK.CHIP_IN_USE_7": 7,
		"TT_UMD_LOCK.CHIP_IN_USE_0_JTAG": -1, "TT_UMD_LOCK.CHIP_IN_USE_": -1, "TT_UMD_LOCK.CHIP_IN_USE__PCIe": -1,
		"TT_UMD_LOCK.CHIP_IN_USE_-1_PCIe": -1, "TT_UMD_LOCK.CHIP_IN_USE_99999": -1, "TT_UMD_LOCK.ARC_MSG_0_PCIe": -1,
		"tt_device_1_memory": -1, "": -1,
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := lockIndex(name); ok != (want >= 0) || ok && got != want {
				t.Errorf("%q is device %d, %v, want %d", name, got, ok, want)
			}
		})
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add(lockBytes(x86, 1, 1, 1))
	f.Add(lockBytes(arm, ownerDied, 1, 1))
	f.Add(lockBytes(x86, 1, 1, -1))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := parseLock(b)
		held, known := l.Held.Get()
		if known && len(b) < 48 {
			t.Errorf("%d bytes gave an answer", len(b))
		}
		if (l.TID != 0) != held || l.PID.Known() && !held || held && l.OwnerDied || l.TID < 0 || l.PID.V < 0 {
			t.Errorf("%+v", l)
		}
	})
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestLocks(t *testing.T) {
	dir := t.TempDir()
	shm := filepath.Join(dir, LockDir)
	for name, b := range map[string][]byte{
		"TT_UMD_LOCK.CHIP_IN_USE_10_PCIe": lockBytes(x86, 5, 5, 4),
		"TT_UMD_LOCK.CHIP_IN_USE_2_PCIe":  lockBytes(x86, 0, 5, 4),
		"TT_UMD_LOCK.CHIP_IN_USE_2":       lockBytes(x86, 9, 0, -1), // an old UMD has the same device
		"TT_UMD_LOCK.CHIP_IN_USE_3_PCIe":  nil,
		"TT_UMD_LOCK.ARC_MSG_2_PCIe":      lockBytes(x86, 7, 7, 7),
		"tt_device_5_memory":              make([]byte, 100),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(shm, name), b)
		})
	}
	if err := os.Symlink(filepath.Join(shm, "TT_UMD_LOCK.CHIP_IN_USE_10_PCIe"), filepath.Join(shm, "TT_UMD_LOCK.CHIP_IN_USE_4_PCIe")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(shm, "TT_UMD_LOCK.CHIP_IN_USE_5_PCIe"), 0o666); err != nil {
		t.Fatal(err)
	}
	locks, err := Locks(hostfs.At(dir), LockDir)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		device, tid, pid int
		status           model.Status
		held             bool
	}
	var got []row
	for _, l := range locks {
		got = append(got, row{l.Device, l.TID, l.PID.V, l.Held.Status, l.Held.V})
	}
	want := []row{
		{2, 9, 0, model.Known, true},
		{3, 0, 0, model.Pending, false},
		{4, 0, 0, hostfs.Status(unix.ELOOP), false},  // links are not followed
		{5, 0, 0, hostfs.Status(unix.EINVAL), false}, // and a pipe is no lock, and does not make us wait
		{10, 5, 4, model.Known, true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}

	if locks, err := Locks(hostfs.At(t.TempDir()), LockDir); err != nil || locks != nil {
		t.Errorf("a host without the directory: %v, %v", locks, err)
	}
}

func TestLocksDenied(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, LockDir, "TT_UMD_LOCK.CHIP_IN_USE_0_PCIe")
	write(t, path, lockBytes(x86, 1, 1, 1))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		asOtherUser(t, dir)
	}
	locks, err := Locks(hostfs.At(dir), LockDir)
	if err != nil || len(locks) != 1 || locks[0].Held.Status != model.Denied || locks[0].Held.Why == "" {
		t.Errorf("%+v, %v", locks, err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) }) // or it could not be removed
	if err := os.Chmod(filepath.Dir(path), 0); err == nil {
		if locks, err := Locks(hostfs.At(dir), LockDir); !errors.Is(err, unix.EACCES) {
			t.Errorf("a directory we may not read: %+v, %v", locks, err)
		}
	}
}

// asOtherUser makes this test's thread look at files as an ordinary user, who may
// reach dir, until the test ends.
func asOtherUser(t *testing.T, dir string) {
	t.Helper()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 65534, 65534))
	}); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	unix.SetfsuidRetUid(65534)
	t.Cleanup(func() {
		unix.SetfsuidRetUid(0)
		runtime.UnlockOSThread()
	})
}

// holder is a process that holds a lock the way UMD does.
type holder struct {
	*exec.Cmd
	stdin io.Closer
}

func hold(t *testing.T, program, path string) holder {
	t.Helper()
	cmd := exec.Command(program, path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	return holder{cmd, stdin}
}

// TestRealLock holds the parser against glibc's mutexes and the kernel's
// clean-up after a killed owner.
func TestRealLock(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc) to build the lock holder with")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "lockholder")
	if out, err := exec.Command(cc, "-pthread", "-o", program, "testdata/lockholder.c").CombinedOutput(); err != nil {
		t.Fatalf("building the lock holder: %v\n%s", err, out)
	}
	path := filepath.Join(dir, LockDir, "TT_UMD_LOCK.CHIP_IN_USE_3_PCIe")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	read := func() Lock {
		t.Helper()
		before := contents(t, path)
		locks, err := Locks(hostfs.At(dir), LockDir)
		if err != nil || len(locks) != 1 {
			t.Fatalf("%+v, %v", locks, err)
		}
		if diff := cmp.Diff(before, contents(t, path)); diff != "" {
			t.Errorf("reading changed the file:\n%s", diff)
		}
		return locks[0]
	}

	first := hold(t, program, path)
	pid := first.Process.Pid
	if diff := cmp.Diff(Lock{Device: 3, Held: model.Value(true), TID: pid, PID: model.Value(pid)}, read()); diff != "" {
		t.Errorf("held:\n%s", diff)
	}
	first.stdin.Close()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Lock{Device: 3, Held: model.Value(false)}, read()); diff != "" {
		t.Errorf("after it released it:\n%s", diff)
	}

	second := hold(t, program, path)
	second.Process.Kill()
	var exit *exec.ExitError
	if err := second.Wait(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Lock{Device: 3, Held: model.Value(false), OwnerDied: true}, read()); diff != "" {
		t.Errorf("after it was killed:\n%s", diff)
	}

	third := hold(t, program, path)
	if l := read(); l.PID != model.Value(third.Process.Pid) || l.OwnerDied {
		t.Errorf("taken over from a dead owner: %+v", l)
	}
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
