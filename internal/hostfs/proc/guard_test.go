package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/fusetest"
	"github.com/ttmon/ttmon/internal/model"
)

// deadFile is a file on a file system that answers what it is asked about
// the file's content only after it is freed.
type deadFile struct {
	fs.Inode
	deaf  atomic.Bool // does not answer about attributes either
	opens atomic.Int32
	once  sync.Once
	free  chan struct{}
}

var (
	_ fs.NodeOpener    = (*deadFile)(nil)
	_ fs.NodeReader    = (*deadFile)(nil)
	_ fs.NodeWriter    = (*deadFile)(nil)
	_ fs.NodeGetattrer = (*deadFile)(nil)
	_ fs.NodeSetattrer = (*deadFile)(nil)
)

// Open serves the second opener without a page cache.
func (f *deadFile) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if f.opens.Add(1) == 2 {
		return nil, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_KEEP_CACHE, 0
	}
	return nil, 0, 0
}

func (f *deadFile) Read(_ context.Context, _ fs.FileHandle, dest []byte, _ int64) (fuse.ReadResult, syscall.Errno) {
	return fuse.ReadResultData(dest), 0
}

func (f *deadFile) Write(_ context.Context, _ fs.FileHandle, data []byte, _ int64) (uint32, syscall.Errno) {
	<-f.free
	return uint32(len(data)), 0
}

func (f *deadFile) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if f.deaf.Load() {
		<-f.free
	}
	out.Mode, out.Size = 0o644, uint64(os.Getpagesize())
	return 0
}

func (f *deadFile) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.Getattr(ctx, h, out)
}

// release lets the file system answer. It must happen before its users are
// ended: they cannot be killed while they wait.
func (f *deadFile) release() { f.once.Do(func() { close(f.free) }) }

// newDeadFile mounts a file system with one file and returns its path.
func newDeadFile(t *testing.T) (*deadFile, string) {
	t.Helper()
	needRoot(t)
	f := &deadFile{free: make(chan struct{})}
	dir := t.TempDir()
	fusetest.Mount(t, dir, map[string]fs.InodeEmbedder{"file": f})
	return f, filepath.Join(dir, "file")
}

// A process that holds its memory lock while it waits for something dead
// cannot hold us up, and costs one thread, not one for each look.
func TestFrozenProcess(t *testing.T) {
	file, path := newDeadFile(t)
	defer file.release()
	c := start(t, nil, "freeze", path)
	c.line()
	r := New(rootFS)
	r.Guard.timeout = 20 * time.Millisecond
	waitUntilFrozen(t, r, c.pid)
	for range 3 {
		p := r.Describe([]int{c.pid})[0]
		if p.State != model.Running || p.Cmdline.Status != model.Hung || !p.RSS.Known() || p.Name.V == "" {
			t.Errorf("%s, command line %+v, name %+v", p.State, p.Cmdline, p.Name)
		}
		r.known[c.pid].invalidate()
		if len(r.Guard.stuck) != 1 {
			t.Errorf("%d reads are stuck", len(r.Guard.stuck))
		}
	}
	if _, err := environ(r, c.pid, func(string) bool { return true }); hostfs.Status(err) != model.Hung {
		t.Errorf("environment of a frozen process: %v", err)
	}
	if got, _ := check(r, c.pid, 0); got != HoldUnknown {
		t.Errorf("Check of a frozen process that has the device nowhere but, perhaps, mapped: %v", got)
	}
	held := r.Guard.stuck[r.known[c.pid].ProcessID]
	file.release()
	<-held.done
	r.Guard.timeout = time.Minute
	if p := r.Describe([]int{c.pid})[0]; !p.Cmdline.Known() {
		t.Errorf("after the thaw: %+v", p.Cmdline)
	}
	if len(r.Guard.stuck) != 0 {
		t.Errorf("%d reads are stuck after the thaw", len(r.Guard.stuck))
	}
}

// waitUntilFrozen waits until the child is where it cannot be asked.
func waitUntilFrozen(t *testing.T, r *Reader, pid int) {
	t.Helper()
	for range 100 {
		if r.Describe([]int{pid})[0].Cmdline.Status == model.Hung {
			return
		}
		delete(r.known, pid)
		time.Sleep(10 * time.Millisecond)
	}
	t.Skip("needs a kernel that asks FUSE with the memory lock held")
}

// A descriptor into a dead file system has its device number read without
// asking the file system.
func TestFrozenDescriptor(t *testing.T) {
	file, path := newDeadFile(t)
	defer file.release()
	tr := newTree(t, 0)
	tr.write("proc/devices", "Character devices:\n  1 tenstorrent\n")
	c := start(t, nil, "hold", path, "/dev/zero")
	c.line()
	tr.show(c.pid)
	file.deaf.Store(true)
	done := make(chan holderScan)
	go func() {
		s, _ := holders(context.Background(), tr.reader())
		done <- s
	}()
	select {
	case s := <-done:
		wantHolders(t, s, 5, map[int]int{c.pid: 1})
	case <-time.After(time.Minute):
		t.Error("the scan waited for a dead file system")
		file.release()
		<-done
	}
}

// playFreeze makes the kernel ask a dead file system while it holds the memory
// lock of this process: mapping a file past the page cache (its second opener
// is served so) first writes back what was changed through the cache.
func playFreeze(args []string) error {
	page := os.Getpagesize()
	cached, err := os.OpenFile(args[1], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	mem, err := syscall.Mmap(int(cached.Fd()), 0, page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	mem[0] = 1
	direct, err := os.OpenFile(args[1], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	os.Stdout.WriteString("ready\n")
	_, err = syscall.Mmap(int(direct.Fd()), 0, page, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return steps(func(string) error { return nil })
}

// Of a user whose processes do not answer only a few are read: each costs a
// thread.
func TestStuckOfAUser(t *testing.T) {
	g := NewGuard(time.Millisecond)
	free := make(chan struct{})
	asked := atomic.Int32{}
	for pid := range 100 {
		id := model.ProcessID{PID: 1<<30 + pid, StartTicks: 1} // of no user
		returned, err := g.Run(id, func() { asked.Add(1); <-free })
		if !errors.Is(err, hostfs.ErrTimeout) || returned == nil {
			t.Fatalf("process %d: %v", pid, err)
		}
		g.resetTimeout()
	}
	if n := asked.Load(); n != maxStuck {
		t.Errorf("%d were asked, want %d", n, maxStuck)
	}
	ran := false
	if _, err := g.Run(model.ProcessID{PID: os.Getpid(), StartTicks: 1}, func() { ran = true }); err != nil || !ran {
		t.Errorf("another user's: %v", err)
	}
	close(free)
	for len(g.stuck) > 0 {
		time.Sleep(time.Millisecond)
		g.resetTimeout()
	}
	if len(g.users) != 0 {
		t.Errorf("counted: %v", g.users)
	}
}
