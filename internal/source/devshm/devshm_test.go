package devshm

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// lab is a host with processes whose /dev/shm are links.
type lab struct {
	*testing.T
	root string
	dirs *Dirs
	now  time.Time
}

func newLab(t *testing.T) *lab {
	t.Helper()
	root, err := os.MkdirTemp("/dev/shm", "root-*") // memory, as a process's /dev/shm is
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, root: root, dirs: New(hostfs.At(root), ""), now: time.Now()}
	t.Cleanup(func() {
		l.dirs.Close()
		os.RemoveAll(root)
	})
	for _, dir := range []string{"dev/shm", "container/dev/shm", "other/dev/shm"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// send lets a process see the /dev/shm of a container.
func (l *lab) send(pid, where string) {
	l.Helper()
	link := filepath.Join(l.root, "proc", pid, "root")
	_ = os.Remove(link)
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(filepath.Join(l.root, where), link)); err != nil {
		l.Fatal(err)
	}
}

// sweep returns the paths of the directories that processes lead to, in order.
func (l *lab) sweep(pids ...int) (paths []string) {
	l.Helper()
	l.dirs.StartSweep(l.now)
	for _, pid := range pids {
		_ = l.dirs.Reach(id(pid), func(open func(hostfs.Dir)) (<-chan struct{}, error) {
			dir, err := hostfs.At(l.root).OpenDir("/proc/" + string(rune('0'+pid)))
			if err != nil {
				return nil, err
			}
			defer dir.Close()
			open(dir)
			return nil, nil
		})
	}
	for _, d := range l.dirs.All() {
		paths = append(paths, d.Path)
	}
	slices.Sort(paths)
	return paths
}

func id(pid int) model.ProcessID { return model.ProcessID{PID: pid, StartTicks: 1} }

// A directory is there once, whichever processes lead to it, and as long as one does;
// what a process sees is asked now and then.
func TestDirectoriesOfProcesses(t *testing.T) {
	l := newLab(t)
	l.send("7", "container")
	l.send("8", "container")
	l.send("9", "") // the host's own
	want := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, append(want, "/dev/shm")) && !slices.Equal(got, append([]string{"/dev/shm"}, want...)) {
			t.Errorf("%s: %v, want %v and the host's", what, got, want)
		}
	}
	want("two of a container", l.sweep(7, 8, 9), PathOf(7))
	if d := l.dirs.Of(id(8)); d == nil || d != l.dirs.Of(id(7)) || l.dirs.Of(id(9)) != l.dirs.Host {
		t.Error("processes with one directory see different ones")
	}
	want("the first has exited", l.sweep(8, 9), PathOf(8))
	l.send("8", "other")
	want("another one is mounted", l.sweep(8), PathOf(8))
	before := l.dirs.Of(id(8))
	l.now = l.now.Add(leadAge)
	want("later", l.sweep(8), PathOf(8))
	if d := l.dirs.Of(id(8)); d == nil || d == before {
		t.Error("a process that sees another directory now is not noticed")
	}
	want("no process leads to one", l.sweep())
	l.send("8", "nowhere")
	if want("one that cannot be opened", l.sweep(8)); l.dirs.Of(id(8)) != nil {
		t.Error("a process sees what is not there")
	}
	l.send("8", "container")
	want("it is believed for a while", l.sweep(8))
	l.now = l.now.Add(retryAge)
	want("then it is tried again", l.sweep(8), PathOf(8))
	if err := errors.Join(os.Rename(l.root+"/dev/shm", l.root+"/old"), os.Mkdir(l.root+"/dev/shm", 0o755)); err != nil {
		t.Fatal(err)
	}
	old := l.dirs.Host
	if want("another one is mounted on the host", l.sweep()); l.dirs.Host == old {
		t.Error("the host's old one is read")
	}
}

// Names are those that are wanted, as they are now.
func TestNames(t *testing.T) {
	l := newLab(t)
	l.sweep()
	names := func() string {
		t.Helper()
		list, err := l.dirs.Host.Names(time.Now(), 2, func(name string) bool { return strings.HasPrefix(name, "a") })
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Sorted(slices.Values(list)), " ")
	}
	for _, c := range []struct{ name, want string }{{"b", ""}, {"a1", "a1"}, {"a2", "a1 a2"}, {"a3", "a1 a2"}} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(l.root, "dev/shm", c.name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := names(); len(strings.Fields(got)) != len(strings.Fields(c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
