package tree

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// keep is how long the kernel may remember names and attributes. Removals
// are told to it at once, so the only price of a long time is memory; the
// gain is that a read costs one open, one read and one release, and no
// look-up of each directory on the way.
const keep = time.Hour

// fileSystem serves a tree to the kernel. Node ids are given out on first
// look-up and never used again.
type fileSystem struct {
	fuse.RawFileSystem // ENOSYS for whatever is not below
	root               *Dir
	server             atomic.Pointer[fuse.Server]
	born               uint64 // seconds; the time of all files

	mu      sync.RWMutex
	nodes   map[uint64]Node
	lastID  uint64
	handles map[uint64]*handle
	lastFH  uint64
}

// handle is an open file description, or an open directory.
type handle struct {
	file   *File
	opened Opened
	mu     sync.Mutex
	text   []byte          // made by the last read from offset 0
	list   []fuse.DirEntry // of a directory
}

// Mounted is a tree being served.
type Mounted struct {
	server *fuse.Server
	done   chan struct{}
}

// Mount serves root at dir, which must exist. The caller needs CAP_SYS_ADMIN
// over its mount namespace and access to /dev/fuse.
func Mount(root *Dir, dir string) (*Mounted, error) {
	f := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		root:          root,
		born:          uint64(time.Now().Unix()),
		nodes:         map[uint64]Node{fuse.FUSE_ROOT_ID: root},
		lastID:        fuse.FUSE_ROOT_ID,
		handles:       make(map[uint64]*handle),
	}
	root.id.Store(fuse.FUSE_ROOT_ID)
	server, err := fuse.NewServer(f, dir, &fuse.MountOptions{
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
	f.server.Store(server)
	root.setWatch(f.forgetEntry)
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

// forgetPages makes the kernel ask for pages of a file again. No lock may be held.
func (f *fileSystem) forgetPages(file *File, offset, length uint64) {
	id, server := file.id.Load(), f.server.Load()
	if id == 0 || server == nil {
		return
	}
	if st := server.InodeNotify(id, int64(offset), int64(length)); !st.Ok() && st != fuse.ENOENT {
		slog.Debug("cannot invalidate pages", "status", st)
	}
}

// forgetEntry tells the kernel that a name is gone. No lock may be held.
func (f *fileSystem) forgetEntry(dir *Dir, name string) {
	id, server := dir.id.Load(), f.server.Load()
	if id == 0 || server == nil {
		return // the kernel has never seen the directory
	}
	if st := server.EntryNotify(id, name); !st.Ok() && st != fuse.ENOENT {
		slog.Error("cannot drop name from kernel cache", "name", name, "status", st)
	}
}

func (f *fileSystem) String() string { return "ttmon-sim" }

func (f *fileSystem) node(id uint64) Node {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.nodes[id]
}

// remember returns the id of a node, giving it one if it has none, and counts
// n references of the kernel.
func (f *fileSystem) remember(node Node, n int64) uint64 {
	b := node.base()
	b.lookups.Add(n)
	f.mu.Lock()
	defer f.mu.Unlock()
	id := b.id.Load()
	if id == 0 {
		f.lastID++
		id = f.lastID
		b.id.Store(id)
	}
	f.nodes[id] = node
	return id
}

func (f *fileSystem) Forget(id, n uint64) {
	node := f.node(id)
	if node == nil || id == fuse.FUSE_ROOT_ID {
		return
	}
	b := node.base()
	if b.lookups.Add(-int64(n)) > 0 || !b.gone.Load() {
		return
	}
	f.mu.Lock()
	delete(f.nodes, id)
	f.mu.Unlock()
}

func (f *fileSystem) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir, ok := f.node(h.NodeId).(*Dir)
	if !ok || dir.gone.Load() {
		return fuse.ENOENT
	}
	timeout := keep
	node := dir.Get(name)
	if node == nil && dir.Beneath != nil {
		if l := dir.Beneath.get(name); l != nil {
			node, timeout = l, 0
		}
	}
	if node == nil {
		return fuse.ENOENT
	}
	out.NodeId = f.remember(node, 1)
	out.SetEntryTimeout(timeout)
	out.SetAttrTimeout(keep)
	f.attr(node, &out.Attr)
	return fuse.OK
}

func (f *fileSystem) attr(node Node, a *fuse.Attr) {
	a.Ino = node.base().id.Load()
	a.Nlink = 1
	a.Atime, a.Mtime, a.Ctime = f.born, f.born, f.born
	switch n := node.(type) {
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

func (f *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	node := f.node(in.NodeId)
	if node == nil {
		return fuse.ENOENT
	}
	out.SetTimeout(keep)
	f.attr(node, &out.Attr)
	return fuse.OK
}

// SetAttr lets O_TRUNC and utimes pass without effect, as on a device node.
func (f *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	node := f.node(in.NodeId)
	if node == nil {
		return fuse.ENOENT
	}
	if _, ok := node.(*File); !ok || in.Valid&(fuse.FATTR_MODE|fuse.FATTR_UID|fuse.FATTR_GID) != 0 {
		return fuse.EPERM
	}
	f.attr(node, &out.Attr)
	return fuse.OK
}

func (f *fileSystem) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	if l, ok := f.node(h.NodeId).(*Link); ok {
		return []byte(l.Target), fuse.OK
	}
	return nil, fuse.EINVAL
}

func (f *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.NameLen = 4096, 255
	return fuse.OK
}
