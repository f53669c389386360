package gather

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// reporter starts a program that keeps a ledger in dir.
func reporter(t *testing.T, dir string) (pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), reporterDir+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Process.Pid
}

func earlyIn(dir string) *earlyReader {
	r := newEarlyReader(hostfs.Root{})
	r.folder = dir
	return r
}

// taken reads the ledgers of a process and returns how many there were.
func (r *earlyReader) taken(t *testing.T, pid int, now time.Time) (n int) {
	t.Helper()
	r.read(pid, now, func(_ string, l *ledgerfile.Ledger, who failure.Process) {
		n++
		if who.PID != pid || who.UID != os.Getuid() || who.Start == 0 || l.PID != pid {
			t.Errorf("%+v", who)
		}
	})
	return n
}

func TestEarlyRead(t *testing.T) {
	dir := t.TempDir()
	r, pid := earlyIn(dir), reporter(t, dir)
	now := time.Now()
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Millisecond, 0}, {earlyEvery - 1, 0}, {earlyEvery, 1}} {
		if n := r.taken(t, pid, now.Add(tt.after)); n != tt.want {
			t.Errorf("after %v %d ledgers are read, not %d", tt.after, n, tt.want)
		}
	}
	if n := r.taken(t, 1<<30, now.Add(time.Minute)); n != 0 {
		t.Error("a process that is not there has a ledger")
	}
}

// TestEarlyReadBelievesTheKernel: a file that only says in its name that it is the
// ledger of a process is not read.
func TestEarlyReadBelievesTheKernel(t *testing.T) {
	real, dir := t.TempDir(), t.TempDir()
	pid := reporter(t, real)
	names, err := os.ReadDir(real)
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	name := names[0].Name()
	text, err := os.ReadFile(filepath.Join(real, name))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		make func(path string) error
	}{
		{"a copy", func(path string) error { return os.WriteFile(path, text, 0o600) }},
		{"a link", func(path string) error { return os.Symlink(filepath.Join(real, name), path) }},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(path)
			if n := earlyIn(dir).taken(t, pid, time.Now()); n != 0 {
				t.Error("it is read")
			}
		})
	}
}

// TestEarlyReadsAreBounded: by process, by user and in all, however many there
// are.
func TestEarlyReadsAreBounded(t *testing.T) {
	now := time.Now()
	id := func(pid int) model.ProcessID { return model.ProcessID{PID: pid, StartTicks: 1} }
	t.Run("a user's time", func(t *testing.T) {
		r := earlyIn(t.TempDir())
		if !r.may(id(1), 1000, now) {
			t.Fatal("the first is refused")
		}
		r.users[1000].Add(2*earlyBurst, now)
		if r.may(id(2), 1000, now) {
			t.Error("a user may spend more")
		}
		if !r.may(id(3), 1001, now) {
			t.Error("another user is refused")
		}
		if later := now.Add(2 * earlyPart * earlyBurst); !r.may(id(2), 1000, later) {
			t.Error("time does not make up for it")
		}
	})
	t.Run("the time of all", func(t *testing.T) {
		r := earlyIn(t.TempDir())
		r.all.Add(2*earlyInAll, now)
		if r.may(id(1), 1000, now) {
			t.Error("all together may spend more")
		}
	})
	t.Run("what is remembered", func(t *testing.T) {
		r := earlyIn(t.TempDir())
		for i := range 3 * maxMeters {
			r.may(id(i), i, now)
		}
		if len(r.last) > maxMeters || len(r.users) > maxMeters {
			t.Errorf("%d processes and %d users", len(r.last), len(r.users))
		}
		r.users[0] = &budget.Meter{Part: earlyPart}
		r.users[0].Add(time.Hour, now)
		r.forget(now.Add(earlyEvery))
		if len(r.last) != 0 || len(r.users) != 1 {
			t.Errorf("after it is over %d processes and %d users", len(r.last), len(r.users))
		}
	})
}
