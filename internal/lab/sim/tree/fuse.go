package tree

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// keep is how long the kernel may remember names and attributes. Removals
// are told to it at once, so the only price of a long time is memory; the
// gain is that a read costs one open, one read and one release, and no
// look-up of each directory on the way.
const keep = time.Hour

// born is the time of all files.
var born = uint64(time.Now().Unix())

// Mounted is a tree being served.
type Mounted struct {
	server *fuse.Server
	done   chan struct{}
}

// Mount serves root at dir, which must exist. The caller needs CAP_SYS_ADMIN
// over its mount namespace and access to /dev/fuse.
func Mount(root *Dir, dir string) (*Mounted, error) {
	server, err := fuse.NewServer(fs.NewNodeFS(root, &fs.Options{NullPermissions: true}), dir, &fuse.MountOptions{
		AllowOther:           true,
		Options:              []string{"default_permissions"},
		FsName:               "ttmon-sim",
		Name:                 "ttmon-sim",
		DirectMountStrict:    true,
		DisableXAttrs:        true,
		DisableReadDirPlus:   true,
		DisableSplice:        true,
		EnableSymlinkCaching: true, // a link that changes is another node
		MaxWrite:             32 << 10,
		Logger:               slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	})
	if err != nil {
		return nil, fmt.Errorf("mounting the simulated files through /dev/fuse: %w", err)
	}
	closeOnExec()
	m := &Mounted{server: server, done: make(chan struct{})}
	go func() { defer close(m.done); server.Serve() }()
	if err := server.WaitMount(); err != nil {
		return nil, fmt.Errorf("waiting for the FUSE mount: %w", err)
	}
	root.known.Store(true)
	return m, nil
}

// Close unmounts what is mounted at dir and waits for the server to end. All
// reads must have been released before.
func (m *Mounted) Close() error {
	err := m.server.Unmount()
	if err == nil {
		<-m.done
	}
	return err
}

// closeOnExec keeps the FUSE descriptor out of our children: one of them
// holding it would keep the files alive, and every reader waiting, after we
// have died.
func closeOnExec() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + e.Name()); to == "/dev/fuse" {
			var fd int
			if _, err := fmt.Sscan(e.Name(), &fd); err == nil {
				unix.CloseOnExec(fd)
			}
		}
	}
}

// Lookup is for package fs, as are those below.
func (d *Dir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if d.gone.Load() {
		return nil, syscall.ENOENT
	}
	timeout := keep
	found := d.Get(name)
	if found == nil && d.Beneath != nil {
		if l := d.Beneath.get(name); l != nil {
			found, timeout = l, 0
		}
	}
	if found == nil {
		return nil, syscall.ENOENT
	}
	out.SetEntryTimeout(timeout)
	out.SetAttrTimeout(keep)
	setAttr(found, &out.Attr)
	b := found.base()
	b.begun.Lock()
	defer b.begun.Unlock()
	child := d.NewInode(ctx, found, fs.StableAttr{Mode: out.Mode & syscall.S_IFMT})
	b.known.Store(true)
	return child, 0
}

func setAttr(of Node, a *fuse.Attr) {
	a.Nlink = 1
	a.Atime, a.Mtime, a.Ctime = born, born, born
	switch n := of.(type) {
	case *Dir:
		a.Mode = syscall.S_IFDIR | 0o755
		if n.Mode != 0 {
			a.Mode = syscall.S_IFDIR | n.Mode
		}
		a.Nlink = 2
	case *Link:
		a.Mode = syscall.S_IFLNK | 0o777
	case *File:
		a.Mode = syscall.S_IFREG | n.Mode
		a.Size = n.Size
		a.Blksize = 4096
	}
}

func getattr(of Node, out *fuse.AttrOut) syscall.Errno {
	out.SetTimeout(keep)
	setAttr(of, &out.Attr)
	return 0
}

func (d *Dir) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return getattr(d, out)
}

func (l *Link) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return getattr(l, out)
}

func (f *File) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return getattr(f, out)
}

// Setattr lets O_TRUNC and utimes pass without effect, as on a device node.
func (f *File) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if in.Valid&(fuse.FATTR_MODE|fuse.FATTR_UID|fuse.FATTR_GID) != 0 {
		return syscall.EPERM
	}
	return getattr(f, out)
}

func (l *Link) Readlink(context.Context) ([]byte, syscall.Errno) { return []byte(l.Target), 0 }

func (d *Dir) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.NameLen = 4096, 255
	return 0
}

func (d *Dir) Opendir(context.Context) syscall.Errno {
	if d.gone.Load() {
		return syscall.ENOENT
	}
	return 0
}

func (d *Dir) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	list := []fuse.DirEntry{{Name: ".", Mode: syscall.S_IFDIR}, {Name: "..", Mode: syscall.S_IFDIR}}
	if d.Beneath != nil {
		for _, name := range d.Beneath.Names() {
			if d.Get(name) == nil {
				list = append(list, fuse.DirEntry{Name: name, Mode: syscall.S_IFLNK})
			}
		}
	}
	for _, name := range d.Names() {
		if n := d.Get(name); n != nil {
			var a fuse.Attr
			setAttr(n, &a)
			list = append(list, fuse.DirEntry{Name: name, Mode: a.Mode})
		}
	}
	return fs.NewListDirStream(list), 0
}

func caller(ctx context.Context) Caller {
	c, _ := fuse.FromContext(ctx)
	return Caller{TID: int(c.Pid), UID: c.Uid}
}

// handle is an open file description.
type handle struct {
	file   *File
	opened Opened
	mu     sync.Mutex
	text   []byte // made by the last read from offset 0
}

func (f *File) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if f.gone.Load() {
		return nil, 0, syscall.ENOENT
	}
	h := &handle{file: f}
	if f.OnOpen != nil {
		opened, errno := f.OnOpen(caller(ctx), flags)
		if errno != 0 {
			return nil, 0, errno
		}
		h.opened = opened
	}
	if f.Page != nil { // pages are made when they are first touched after an open
		return h, 0, 0
	}
	return h, fuse.FOPEN_DIRECT_IO, 0
}

func (h *handle) Release(context.Context) syscall.Errno {
	if h.opened.Release != nil {
		h.opened.Release()
	}
	return 0
}

// Flush says that there is nothing to flush, once: the kernel does not ask
// again.
func (h *handle) Flush(context.Context) syscall.Errno { return syscall.ENOSYS }

func (h *handle) Read(ctx context.Context, buf []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	at := uint64(offset)
	if h.file.gone.Load() {
		return nil, syscall.ENODEV
	}
	if h.file.Page != nil {
		buf = buf[:min(uint64(len(buf)), h.file.Size-min(at, h.file.Size))]
		if errno := h.file.Page(at, buf); errno != 0 {
			return nil, errno
		}
		return fuse.ReadResultData(buf), 0
	}
	if h.file.Show == nil {
		return nil, syscall.EINVAL
	}
	h.mu.Lock()
	text := h.text
	h.mu.Unlock()
	if at == 0 || text == nil || h.file.Binary {
		// Not under the lock: a blocked read must not hold up another one
		// on the same description.
		var errno syscall.Errno
		if text, errno = h.file.Show(caller(ctx)); errno != 0 {
			return nil, errno
		}
		h.mu.Lock()
		h.text = text
		h.mu.Unlock()
	}
	text = text[min(at, uint64(len(text))):]
	return fuse.ReadResultData(text[:min(len(text), len(buf))]), 0
}

func (h *handle) Write(ctx context.Context, data []byte, _ int64) (uint32, syscall.Errno) {
	switch {
	case h.file.gone.Load():
		return 0, syscall.ENODEV
	case h.file.Store == nil:
		return 0, syscall.EACCES
	}
	if errno := h.file.Store(caller(ctx), data); errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

func (h *handle) Ioctl(ctx context.Context, cmd uint32, arg uint64, _, _ []byte) (int32, syscall.Errno) {
	switch {
	case h.opened.Ioctl == nil:
		return 0, syscall.ENOTTY
	case h.file.gone.Load():
		return 0, syscall.ENODEV
	}
	return 0, h.opened.Ioctl(caller(ctx), cmd, arg)
}
