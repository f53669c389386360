package keep

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// large is a failure of a list with many blocks, which do not compress well.
func large(pid, uid, n int, at time.Time) *failure.Record {
	r := failed(pid, uid, at)
	random := rand.New(rand.NewPCG(uint64(pid), 1))
	l := blocks.NewList(r.State.Geometry, blocks.FromStart)
	l.Capacity = 1 << 50
	for i := range n {
		l.Alloc(blocks.Block{Addr: uint64(i) << 20, Size: 64 + uint64(random.IntN(1<<19)), Asked: random.Uint64(), Born: random.Int64()})
	}
	r.State, r.Request.BankBytes = l, 1<<51
	r.Judge()
	return r
}

// onDisk is how many files there are, and how large they are together.
func onDisk(t *testing.T, dir string) (files int, size int64) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return len(list), size
}

// TestThousands: however many fail, of however many users, what is kept is bounded
// by user and in all, in memory and on disk, and a restart finds the same.
func TestThousands(t *testing.T) {
	hermetic.Long(t)
	dir := t.TempDir()
	s := open(t, dir, DefaultLimits)
	s.Add(failed(1, 7, noon)) // of a user who fails once
	for i := range 2000 {
		s.Add(failed(100+i, 1000, noon.Add(time.Duration(i)*time.Millisecond)))
	}
	if n := len(s.List(func(uid int) bool { return uid == 1000 })); n != DefaultLimits.OfUser {
		t.Errorf("%d are kept of one user, want %d", n, DefaultLimits.OfUser)
	}
	if n := len(s.List(func(uid int) bool { return uid == 7 })); n != 1 {
		t.Errorf("one user's thousands hide another's: %d are left", n)
	}
	for i := range 1000 {
		s.Add(failed(5000+i, 2000+i%100, noon.Add(time.Duration(i)*time.Millisecond)))
	}
	list, all := s.List(everybody), DefaultLimits.All
	if files, size := onDisk(t, dir); len(list) != all || files != all || size > DefaultLimits.AllBytes {
		t.Errorf("%d are kept in %d files of %d bytes, want %d", len(list), files, size, all)
	}
	if again := open(t, dir, DefaultLimits).List(everybody); len(again) != len(list) || again[0].ID != list[0].ID || again[all-1].ID != list[all-1].ID {
		t.Errorf("a restart finds %d of %d", len(again), len(list))
	}
}

// TestOversize: a record that is too large for a file is kept without its blocks,
// and says so.
func TestOversize(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, DefaultLimits)
	a := s.Add(large(7, 1000, 1<<17, noon))
	for _, s := range []*Store{s, open(t, dir, DefaultLimits)} {
		r, ok := s.Get(a.ID)
		if !ok || r.State.Usage().Blocks != 0 || r.Doubts[len(r.Doubts)-1] != failure.BlocksMissing || r.Verdict.Cause != failure.TooLarge {
			t.Fatalf("%+v, %v", r, ok)
		}
	}
	if _, size := onDisk(t, dir); size > maxFile {
		t.Errorf("it takes %d bytes", size)
	}
}

// TestLargeOnesAreNotHeld: programs with many blocks that fail again and again are
// counted, and their states are not held in memory meanwhile.
func TestLargeOnesAreNotHeld(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, DefaultLimits)
	const programs, times = 4, 50
	for i := range times {
		for pid := range programs {
			s.Add(large(pid+1, 1000, 2*dirtyBlocks, noon.Add(time.Duration(i)*time.Millisecond)))
		}
	}
	for _, x := range s.kept.Items {
		if x.Value.dirty != nil {
			t.Errorf("%s is held in memory", x.Name)
		}
	}
	s.Flush()
	for _, s := range []*Store{s, open(t, dir, DefaultLimits)} {
		for _, k := range s.List(everybody) {
			r, ok := s.Get(k.ID)
			if !ok || k.Count != times || r.Count != times || r.State.Usage().Blocks != 2*dirtyBlocks || !r.Last.Equal(noon.Add((times-1)*time.Millisecond)) {
				t.Errorf("%+v: %d times, until %v, %v", k, r.Count, r.Last, ok)
			}
		}
	}
}

// TestFullDisk: what finds no room on the disk is kept in memory, within the same
// bounds, and what is written later is there after a restart.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a file system of its own cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	s := open(t, filepath.Join(dir, "failures"), DefaultLimits)
	for pid := range 100 {
		s.Add(failed(pid+1, 1000, noon))
	}
	list := s.List(everybody)
	if len(list) != DefaultLimits.OfUser {
		t.Fatalf("%d are kept, want %d", len(list), DefaultLimits.OfUser)
	}
	if r, ok := s.Get(list[0].ID); !ok || r.Verdict.Cause != failure.Full {
		t.Errorf("%+v, %v", r, ok)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	a := s.Add(failed(4242, 1000, noon))
	if r, ok := open(t, filepath.Join(dir, "failures"), DefaultLimits).Get(a.ID); !ok || r.Process.PID != 4242 {
		t.Errorf("after a restart: %+v, %v", r, ok)
	}
}
