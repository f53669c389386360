// Package tree holds the files of a simulated host: directories, links, and
// files whose text is made when it is read.
//
// The driver package builds and changes the tree; Mount serves it through
// FUSE, where a read can also fail or not return, and WritePlain copies what
// it shows at one moment into an ordinary directory.
package tree

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
)

// Caller is who makes a request, as the serving process sees it.
type Caller struct {
	TID int // thread id; 0 if the caller is outside our pid namespace
	UID uint32
}

// Node is one entry of the tree: a *Dir, *Link or *File.
type Node interface {
	fs.InodeEmbedder
	base() *node
}

// node is what all of them have.
type node struct {
	fs.Inode
	gone  atomic.Bool // removed from the tree: reads give ENODEV
	begun sync.Mutex  // held while the kernel gets to know it
	known atomic.Bool // the kernel knows it
}

func (n *node) base() *node { return n }

// Dir is a directory. The zero Dir is empty, with mode 0755.
type Dir struct {
	node
	Mode uint32 // permission bits; 0 means 0755
	// Beneath, if set, is a directory of the real host whose links show
	// through wherever the tree has no entry of that name.
	Beneath *HostDir

	mu      sync.RWMutex
	entries map[string]Node
}

// Link is a symbolic link.
type Link struct {
	node
	Target string
}

// File is a file whose text is made again on each read from offset 0, as
// sysfs and procfs do.
type File struct {
	node
	Mode uint32 // permission bits
	Size uint64 // as stat shows it; 4096 for sysfs attributes
	// Binary files are made again on each read, from any offset.
	Binary bool
	// Show makes the text. It may block for as long as it likes: the reader
	// then waits in the kernel and no signal frees it.
	Show func(Caller) ([]byte, syscall.Errno)
	// Page makes the bytes at an offset, for a file that can be mapped; Show
	// is not asked then. It may block like Show.
	Page func(offset uint64, b []byte) syscall.Errno
	// Store takes what was written; nil refuses with EACCES.
	Store func(Caller, []byte) syscall.Errno
	// OnOpen is called for every open file description; nil allows all.
	OnOpen func(c Caller, flags uint32) (Opened, syscall.Errno)
}

// Forget makes readers of a mapped file ask for these bytes again. No lock that
// Page takes may be held.
func (f *File) Forget(offset, length uint64) {
	if f.known.Load() {
		_ = f.NotifyContent(int64(offset), int64(length))
	}
}

// Opened is what a File wants to know about one open file description. All
// fields may be nil.
type Opened struct {
	// Release is called when its last descriptor is closed.
	Release func()
	// Ioctl answers ioctl(2); nil refuses with ENOTTY. The argument is the
	// pointer as the caller passed it.
	Ioctl func(c Caller, cmd uint32, arg uint64) syscall.Errno
}

// Attr is an attribute as sysfs has it: read-only, 4096 bytes by stat.
func Attr(show func() ([]byte, syscall.Errno)) *File {
	return &File{Mode: 0o444, Size: 4096, Show: func(Caller) ([]byte, syscall.Errno) { return show() }}
}

// Text is an attribute that never changes. The line break is added.
func Text(s string) *File {
	b := []byte(s + "\n")
	return Attr(func() ([]byte, syscall.Errno) { return b, 0 })
}

// Get returns an entry of the tree itself, or nil.
func (d *Dir) Get(name string) Node {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.entries[name]
}

// Names lists the entries of the tree itself, sorted.
func (d *Dir) Names() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	names := make([]string, 0, len(d.entries))
	for name := range d.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Add puts node into the directory, instead of one already there.
func (d *Dir) Add(name string, node Node) {
	d.Remove(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.entries == nil {
		d.entries = make(map[string]Node)
	}
	d.entries[name] = node
}

// Dir returns the sub-directory of that name, making it if need be.
func (d *Dir) Dir(name string) *Dir {
	if sub, ok := d.Get(name).(*Dir); ok {
		return sub
	}
	sub := &Dir{}
	d.Add(name, sub)
	return sub
}

// At returns the directory at a path below this one, making what is missing.
func (d *Dir) At(path string) *Dir {
	for name := range strings.SplitSeq(path, "/") {
		d = d.Dir(name)
	}
	return d
}

// Find returns the directory at a path below this one, or nil.
func (d *Dir) Find(path string) *Dir {
	for name := range strings.SplitSeq(path, "/") {
		if d, _ = d.Get(name).(*Dir); d == nil {
			return nil
		}
	}
	return d
}

// Remove takes an entry out, with all below it: new opens fail with ENOENT,
// descriptors still open with ENODEV. It reports whether there was one.
func (d *Dir) Remove(name string) bool {
	d.mu.Lock()
	node, ok := d.entries[name]
	delete(d.entries, name)
	d.mu.Unlock()
	if !ok {
		return false
	}
	markRemoved(node)
	if d.known.Load() {
		if errno := d.NotifyEntry(name); errno != 0 && errno != syscall.ENOENT {
			slog.Error("cannot drop name from kernel cache", "name", name, "err", errno)
		}
	}
	return true
}

// markRemoved marks a removed node and all below it.
func markRemoved(node Node) {
	node.base().gone.Store(true)
	if d, ok := node.(*Dir); ok {
		for _, name := range d.Names() {
			if sub := d.Get(name); sub != nil {
				markRemoved(sub)
			}
		}
	}
}
