package shm

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"

	"github.com/ttmon/ttmon/internal/model"
)

const regionOne = "/dev/shm/tt_device_1_memory"

// sceneWithGhost is a scene with a ghost in the region of chip 1.
func sceneWithGhost(t *testing.T, o metal.Options) *scene {
	s := newScene(t)
	s.kill(s.start(o, "name dead", "open 1", "alloc 1 dram 1000"))
	s.read()
	s.ghosts(s.holds(1), "dead:1000")
	return s
}

func TestRemove(t *testing.T) {
	s := sceneWithGhost(t, metal.Options{})
	left := s.last.Leftovers()
	if len(left) != 1 || left[0].Region != s.region(1) || left[0].Blocked != nil {
		t.Fatalf("leftovers %+v", left)
	}
	if err := s.r.Remove(left[0].Region); err != nil {
		t.Fatal(err)
	}
	if names := list(t); len(names) != 0 {
		t.Errorf("left in /dev/shm: %q", names)
	}
	if s.read(); len(s.last.Regions) != 0 {
		t.Errorf("regions %+v", s.last.Regions)
	}
	next := s.start(metal.Options{}, "open 1", "alloc 1 dram 5")
	s.read()
	s.ghosts(s.holds(1, next))
	if left := s.last.Leftovers(); len(left) != 0 {
		t.Errorf("leftovers %+v", left)
	}
}

func TestRemoveRefusesWhatIsInUse(t *testing.T) {
	s := sceneWithGhost(t, metal.Options{})
	dead := s.region(1)
	// It attaches after the sweep, and records nothing: only its mapping tells.
	p := s.start(metal.Options{}, "open 1")
	before := contents(t, regionOne)
	err := s.r.Remove(dead)
	inUse, ok := errors.AsType[*InUseError](err)
	if !ok || len(inUse.PIDs) != 1 || inUse.PIDs[0] != p.PID {
		t.Errorf("error %v, want in use by %d", err, p.PID)
	}
	if !bytes.Equal(before, contents(t, regionOne)) || len(list(t)) != 1 {
		t.Error("the region was touched")
	}
	s.read(p)
	if left := s.last.Leftovers(); len(left) != 1 || left[0].Blocked == nil || left[0].Blocked.Kind != model.RegionInUse {
		t.Errorf("leftovers %+v", left)
	}
}

// A container's process has the region under another mount.
func TestRemoveSeesContainers(t *testing.T) {
	s := sceneWithGhost(t, metal.Options{})
	p := s.start(metal.Options{Container: true}, "open 1")
	err := s.r.Remove(s.region(1))
	if inUse, ok := errors.AsType[*InUseError](err); !ok || inUse.PIDs[0] != p.PID {
		t.Errorf("error %v, want in use by %d", err, p.PID)
	}
}

func TestRemoveRefusesOtherFiles(t *testing.T) {
	swaps := map[string]func(t *testing.T){
		"another inode": func(t *testing.T) { write(t, regionOne, "innocent") },
		"a link": func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "innocent")
			write(t, target, "innocent")
			if err := os.Symlink(target, regionOne); err != nil {
				t.Fatal(err)
			}
		},
		"a directory": func(t *testing.T) {
			if err := os.Mkdir(regionOne, 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"nothing": func(*testing.T) {},
	}
	for name, swap := range swaps {
		t.Run(name, func(t *testing.T) {
			s := sceneWithGhost(t, metal.Options{})
			reg := s.region(1)
			if err := os.Rename(regionOne, "/dev/shm/kept"); err != nil {
				t.Fatal(err)
			}
			swap(t)
			before := list(t)
			if err := s.r.Remove(reg); err == nil {
				t.Error("removed")
			}
			if after := list(t); strings.Join(before, " ") != strings.Join(after, " ") {
				t.Errorf("files %q became %q", before, after)
			}
		})
	}
}

func TestRemoveOnlyOwn(t *testing.T) {
	sceneWithGhost(t, metal.Options{})
	if os.Geteuid() != 0 {
		t.Skip("needs root: another user")
	}
	if err := removeAs(t, unprivileged); err == nil || len(list(t)) != 1 {
		t.Errorf("another user's: %v", err)
	}
	if err := os.Chmod(regionOne, 0o666); err != nil { // now it may be read, and written
		t.Fatal(err)
	}
	if err := removeAs(t, unprivileged); err == nil || !strings.Contains(err.Error(), "belongs to uid 0") || len(list(t)) != 1 {
		t.Errorf("another user's: %v", err)
	}
	if err := removeAs(t, 0); err != nil {
		t.Errorf("root: %v", err)
	}
	mine := newScene(t)
	mine.kill(mine.start(metal.Options{UID: unprivileged}, "open 1", "alloc 1 dram 3"))
	if err := removeAs(t, unprivileged); err != nil {
		t.Errorf("one's own: %v", err)
	}
	if names := list(t); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
}

const unprivileged = 65534

// removeName is the name under which the test program removes all leftovers.
const removeName = "shm-remover"

func removeAs(t *testing.T, uid int) error {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = removeName
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return nil
}

func removeAsChild() error {
	r := NewReader(Options{})
	defer r.Close()
	r.complete = true
	left := r.Read(nil).Leftovers()
	if len(left) == 0 {
		return errors.New("no region with ghosts can be read")
	}
	for _, l := range left {
		if err := r.Remove(l.Region); err != nil {
			return err
		}
	}
	return nil
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
