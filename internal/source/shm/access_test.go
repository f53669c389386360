package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// As another user exactly the regions that may not be read are denied.
func TestOtherUsersRegions(t *testing.T) {
	s := newScene(t)
	root := s.start(metal.Options{}, "open 1", "alloc 1 dram 100")
	mine := s.start(metal.Options{UID: unprivileged}, "open 2", "alloc 2 dram 7")
	s.readAs(unprivileged, root, mine)
	s.doubts(s.holds(2, mine))
	reg := s.region(1)
	s.doubts(reg, model.RegionDenied)
	for _, pool := range regionPools {
		if r := usedOf(reg)[pool]; r.Status() != model.Denied {
			t.Errorf("%s: %v, want denied", pool, r)
		}
	}
	p := s.process(root)
	if p.Accounts || p.Silent.Kind != model.ProcessDenied || p.Silent.UID != 0 {
		t.Errorf("process of root: %+v", p.Silent)
	}
	// Root sees all.
	s.read(root, mine)
	s.holds(1, root)
	s.holds(2, mine)
}

// In a region that root made for everybody, others' processes can be known
// only by pid, name and start time.
func TestOtherUsersProcesses(t *testing.T) {
	s := newScene(t)
	if err := os.WriteFile(regionOne, make([]byte, Size), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(regionOne, 0o666); err != nil {
		t.Fatal(err)
	}
	root := s.start(metal.Options{}, "name rooted", "open 1", "alloc 1 dram 100")
	mine := s.start(metal.Options{UID: unprivileged}, "open 1", "alloc 1 dram 7")
	s.kill(s.start(metal.Options{}, "name dead", "open 1", "alloc 1 dram 1000"))
	s.readAs(unprivileged)
	reg := s.holds(1, root, mine)
	guessed := func(u Use) bool {
		return slices.ContainsFunc(u.Doubts, func(d model.Doubt) bool { return d.Kind == model.OwnerGuessed })
	}
	if u := s.use(reg, root); !guessed(u) {
		t.Errorf("doubts %v", u.Doubts)
	}
	if u := s.use(reg, mine); guessed(u) {
		t.Errorf("doubts %v", u.Doubts)
	}
	s.ghosts(reg, "dead:1000")
	s.do(root, "name renamed") // and then not even by that
	s.readAs(unprivileged)
	reg = s.region(1)
	s.ghosts(reg, "dead:1000")
	if len(reg.Uses) != 1 || len(reg.Unknown) != 1 || show(reg.Unknown[0].Bytes[model.DRAM]) != "100" {
		t.Errorf("uses %+v, unknown %+v", reg.Uses, reg.Unknown)
	}
	s.doubts(reg, model.SlotUnproven)
}

// An owner that is known only by pid, name and start time is watched, too.
func TestGuessedOwnerDies(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{}, "name guessed", "open 1", "alloc 1 dram 10")
	s.read()
	s.holds(1, p)
	s.hideMaps(p)
	s.kill(p)
	s.read()
	s.ghosts(s.holds(1), "guessed:10")
}

// hideMaps makes the one owner in the first slot of every region a process whose
// mappings may not be read.
func (s *scene) hideMaps(w *metal.Process) {
	p := s.r.procs[w.PID]
	p.maps, p.mapsErr = mappings{}, unix.EACCES
	for _, reg := range s.r.regions {
		reg.states[0].sure = false
	}
}

// From inside a container not everybody is seen: who is not may be alive.
func TestOwnersOutOfSight(t *testing.T) {
	s := newScene(t)
	s.r.complete = false
	s.kill(s.start(metal.Options{}, "name gone", "open 1", "alloc 1 dram 1000"))
	p := s.start(metal.Options{}, "open 1", "alloc 1 dram 5")
	s.read()
	reg := s.holds(1, p)
	s.doubts(reg, model.SlotUnseen)
	if len(reg.StaleSlots) != 0 || len(reg.Unknown) != 1 || show(reg.Unknown[0].Bytes[model.DRAM]) != "1000" {
		t.Errorf("ghosts %+v, unknown %+v", reg.StaleSlots, reg.Unknown)
	}
	if err := s.r.Remove(reg); err == nil {
		t.Error("removed without seeing all processes")
	}
}

// node is a file under the path of a device, below a root of its own.
func node(s *scene) string {
	dir := filepath.Join(s.TempDir(), nodeDir)
	path := filepath.Join(dir, "0")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, make([]byte, os.Getpagesize()), 0o644)); err != nil {
		s.Fatal(err)
	}
	return path
}

func TestUntrackedUsers(t *testing.T) {
	lib := func(t *testing.T, release string) string { return "lib " + install(t, release) }
	tests := []struct {
		name  string
		o     metal.Options
		setup func(s *scene) []string
		why   model.DoubtKind
	}{
		{
			"not a tt-metal program",
			metal.Options{},
			func(*scene) []string { return nil },
			model.NotTTMetal,
		},
		{
			"drives a device without the library",
			metal.Options{},
			func(s *scene) []string { return []string{"map " + node(s)} },
			model.LibraryUnseen,
		},
		{
			"too old",
			metal.Options{},
			func(s *scene) []string { return []string{lib(s.T, "0.69.0")} },
			model.OldRelease,
		},
		{
			"switched off",
			metal.Options{Env: []string{disableVariable + "=1"}},
			func(s *scene) []string { return []string{lib(s.T, "0.81.1"), "open 1"} },
			model.TrackingDisabled,
		},
		{
			"not switched off",
			metal.Options{Env: []string{disableVariable + "=0"}},
			func(s *scene) []string { return []string{lib(s.T, "0.81.1")} },
			model.NotAttached,
		},
		{"another user's region", metal.Options{UID: unprivileged}, func(s *scene) []string {
			s.start(metal.Options{}, "open 1")
			return []string{lib(s.T, "0.81.1"), "!open 1"}
		}, model.ShutOut},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			p := s.start(tt.o)
			for _, c := range tt.setup(s) {
				if c, fails := strings.CutPrefix(c, "!"); fails {
					if _, err := p.Do(c); err == nil {
						t.Fatalf("%s: the scenario does not work", c)
					}
				} else {
					s.do(p, c)
				}
			}
			s.read(p)
			got := s.process(p)
			why := got.Silent.Kind
			for _, d := range got.ShutOut {
				why = d.Kind
			}
			if got.Accounts || why != tt.why || got.Silent.PID != p.PID || !got.User {
				t.Errorf("%+v, want %s", got, tt.why)
			}
		})
	}
}

// A program that opens a device before it maps it is not taken to hold nothing
// for long.
func TestBeginsToDrive(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{})
	s.read(p)
	if got := s.process(p).Silent.Kind; got != model.NotTTMetal {
		t.Fatalf("before: %s", got)
	}
	s.r.procs[p.PID].mapsFor = time.Millisecond
	if age := s.r.procs[p.PID].mapsAge(); age != mapsAge {
		t.Errorf("what it maps is believed for %v while its address space is the same, want %v", age, mapsAge)
	}
	s.r.procs[p.PID].mapsSize++
	if age := s.r.procs[p.PID].mapsAge(); age != time.Second {
		t.Errorf("what it maps is believed for %v, want a thousand times what reading it took", age)
	}
	s.r.procs[p.PID].mapsSize--
	s.do(p, "map "+node(s))
	s.r.procs[p.PID].mapsFor = 0
	s.read(p)
	if got := s.process(p).Silent.Kind; got != model.LibraryUnseen {
		t.Errorf("after: %s", got)
	}
}

// Whatever lies about under a region's name does no harm.
func TestOddFiles(t *testing.T) {
	s := newScene(t)
	name := func(id int) string { return fmt.Sprintf("/dev/shm/tt_device_%d_memory", id) }
	write(t, name(1), "short")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere") // a region, but for the link
	write(t, elsewhere, string(newImage(3, 2)))
	if err := os.Symlink(elsewhere, name(2)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name(3), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(name(4), 0o666); err != nil { // opening it would block
		t.Fatal(err)
	}
	write(t, name(1000), string(newImage(3, 1001)))
	write(t, name(6), string(newImage(5, 6)))
	write(t, name(7), string(append(newImage(3, 7), make([]byte, 4096)...)))
	write(t, name(8), string(newImage(1, 0)))
	s.read()
	want := map[uint64]struct {
		why   model.Status
		doubt []model.DoubtKind
	}{
		1:    {model.Absent, []model.DoubtKind{model.RegionUnreadable}},
		1000: {model.Unsupported, []model.DoubtKind{model.RegionMisnamed}},
		6:    {model.Unsupported, []model.DoubtKind{model.LayoutUnknown}},
		7:    {model.Known, nil},
		8:    {model.Known, nil},
	}
	if len(s.last.Regions) != len(want) {
		t.Errorf("%d regions, want %d", len(s.last.Regions), len(want))
	}
	for id, w := range want {
		t.Run(fmt.Sprint(id), func(t *testing.T) {
			reg := s.region(id)
			s.doubts(reg, w.doubt...)
			if reg.Why != w.why {
				t.Errorf("chip %d: %v, want %v", id, reg.Why, w.why)
			}
		})
	}
	// A file that shrinks under the reader is a short read.
	if err := os.Truncate(name(7), 100); err != nil {
		t.Fatal(err)
	}
	s.read()
	s.doubts(s.region(7), model.RegionUnreadable)
}

// Reading leaves no trace: not in the bytes, the times or the inode.
func TestNothingIsWritten(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{}, "open 1", "alloc 1 dram 100", "open 3", "alloc 3 dram 1")
	q := s.start(metal.Options{Layout: 4, Container: true}, "open 2", "alloc 2 l1 7")
	s.kill(s.start(metal.Options{}, "open 1", "alloc 1 dram 1000"))
	s.kill(s.start(metal.Options{Layout: 4}, "make 4"))
	type trace struct {
		ino, size    uint64
		atime, mtime unix.Timespec
		ctime        unix.Timespec
		mode, uid    uint32
		content      string
	}
	look := func() (all map[string]trace) {
		all = map[string]trace{}
		for _, name := range append(list(t), ".") {
			var st unix.Stat_t
			if err := unix.Lstat("/dev/shm/"+name, &st); err != nil {
				t.Fatal(err)
			}
			tr := trace{ino: st.Ino, size: uint64(st.Size), mtime: st.Mtim, ctime: st.Ctim, atime: st.Atim, mode: st.Mode, uid: st.Uid}
			if name != "." {
				tr.content = string(readNoAtime(t, "/dev/shm/"+name))
			} else {
				tr.atime = unix.Timespec{} // listing a directory is reading it
			}
			all[name] = tr
		}
		return all
	}
	before := look()
	for range 5 {
		s.read(p, q)
		s.holds(1, p)
	}
	for _, l := range s.last.Leftovers() {
		if err := s.r.Remove(l.Region); err == nil {
			t.Errorf("removed %s, which is in use", l.Region.Path)
		}
	}
	s.r.Close()
	s.r = s.reader(Options{})
	s.read(p, q)
	after := look()
	if len(before) != 5 || len(after) != len(before) {
		t.Fatalf("%d files, then %d", len(before), len(after))
	}
	for name, b := range before {
		if after[name] != b {
			t.Errorf("%s changed:\n%+v\n%+v", name, b, after[name])
		}
	}
}

func readNoAtime(t *testing.T, path string) []byte {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOATIME, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	buf := make([]byte, 2*Size)
	n, _ := f.Read(buf)
	return buf[:n]
}
