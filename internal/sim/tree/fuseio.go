package tree

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func caller(h *fuse.InHeader) Caller { return Caller{TID: int(h.Pid), UID: h.Uid} }

func (f *fileSystem) addHandle(h *handle) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastFH++
	f.handles[f.lastFH] = h
	return f.lastFH
}

func (f *fileSystem) handle(fh uint64) *handle {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.handles[fh]
}

func (f *fileSystem) dropHandle(fh uint64) *handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.handles[fh]
	delete(f.handles, fh)
	return h
}

func (f *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	file, ok := f.node(in.NodeId).(*File)
	if !ok || file.gone.Load() {
		return fuse.ENOENT
	}
	h := &handle{file: file}
	if file.Open != nil {
		opened, errno := file.Open(caller(&in.InHeader), in.Flags)
		if errno != 0 {
			return fuse.Status(errno)
		}
		h.opened = opened
	}
	out.Fh = f.addHandle(h)
	file.served.Store(f)
	if file.Page == nil { // else pages are made when they are first touched after an open
		out.OpenFlags = fuse.FOPEN_DIRECT_IO
	}
	return fuse.OK
}

func (f *fileSystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	if h := f.dropHandle(in.Fh); h != nil && h.opened.Release != nil {
		h.opened.Release()
	}
}

// Flush says that there is nothing to flush, once: the kernel does not ask
// again.
func (f *fileSystem) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

func (f *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	h := f.handle(in.Fh)
	if h == nil {
		return nil, fuse.EBADF
	}
	if h.file.gone.Load() {
		return nil, fuse.Status(syscall.ENODEV)
	}
	if h.file.Page != nil {
		buf = buf[:min(uint64(len(buf)), h.file.Size-min(in.Offset, h.file.Size))]
		if errno := h.file.Page(in.Offset, buf); errno != 0 {
			return nil, fuse.Status(errno)
		}
		return fuse.ReadResultData(buf), fuse.OK
	}
	if h.file.Show == nil {
		return nil, fuse.EINVAL
	}
	h.mu.Lock()
	text := h.text
	h.mu.Unlock()
	if in.Offset == 0 || text == nil || h.file.Binary {
		// Not under the lock: a blocked read must not hold up another one
		// on the same description.
		var errno syscall.Errno
		if text, errno = h.file.Show(caller(&in.InHeader)); errno != 0 {
			return nil, fuse.Status(errno)
		}
		h.mu.Lock()
		h.text = text
		h.mu.Unlock()
	}
	if in.Offset >= uint64(len(text)) {
		return fuse.ReadResultData(nil), fuse.OK
	}
	text = text[in.Offset:]
	return fuse.ReadResultData(text[:min(len(text), len(buf))]), fuse.OK
}

func (f *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	h := f.handle(in.Fh)
	switch {
	case h == nil:
		return 0, fuse.EBADF
	case h.file.gone.Load():
		return 0, fuse.Status(syscall.ENODEV)
	case h.file.Store == nil:
		return 0, fuse.EACCES
	}
	if errno := h.file.Store(caller(&in.InHeader), data); errno != 0 {
		return 0, fuse.Status(errno)
	}
	return uint32(len(data)), fuse.OK
}

func (f *fileSystem) Ioctl(_ <-chan struct{}, in *fuse.IoctlIn, _ []byte, _ *fuse.IoctlOut, _ []byte) fuse.Status {
	h := f.handle(in.Fh)
	switch {
	case h == nil || h.file == nil || h.opened.Ioctl == nil:
		return fuse.Status(syscall.ENOTTY)
	case h.file.gone.Load():
		return fuse.Status(syscall.ENODEV)
	}
	return fuse.Status(h.opened.Ioctl(caller(&in.InHeader), in.Cmd, in.Arg))
}

func (f *fileSystem) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	dir, ok := f.node(in.NodeId).(*Dir)
	if !ok || dir.gone.Load() {
		return fuse.ENOENT
	}
	out.Fh = f.addHandle(&handle{list: f.list(dir)})
	return fuse.OK
}

// list is the directory as it is now; an open directory keeps to it.
func (f *fileSystem) list(dir *Dir) []fuse.DirEntry {
	list := []fuse.DirEntry{{Name: ".", Mode: syscall.S_IFDIR}, {Name: "..", Mode: syscall.S_IFDIR}}
	var beneath []string
	if dir.Beneath != nil {
		beneath = dir.Beneath.Names()
	}
	for _, name := range beneath {
		if dir.Get(name) == nil {
			list = append(list, fuse.DirEntry{Name: name, Mode: syscall.S_IFLNK})
		}
	}
	for _, name := range dir.Names() {
		var a fuse.Attr
		if node := dir.Get(name); node != nil {
			f.attr(node, &a)
			list = append(list, fuse.DirEntry{Name: name, Mode: a.Mode, Ino: a.Ino})
		}
	}
	for i := range list {
		list[i].Off = uint64(i + 1)
	}
	return list
}

func (f *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	h := f.handle(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	for i := int(in.Offset); i < len(h.list); i++ {
		if !out.AddDirEntry(h.list[i]) {
			break
		}
	}
	return fuse.OK
}

func (f *fileSystem) ReleaseDir(in *fuse.ReleaseIn) { f.dropHandle(in.Fh) }
