// Package fusetest serves files to tests that a disk cannot: files whose
// reads wait. It is outside the data flow; only tests import it.
package fusetest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Mount serves files at dir until the test ends. A machine on which FUSE
// cannot be mounted skips the test.
func Mount(t testing.TB, dir string, files map[string]fs.InodeEmbedder) {
	t.Helper()
	root := &fs.Inode{}
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: os.Geteuid() == 0},
		OnAdd: func(ctx context.Context) {
			for name, f := range files {
				root.AddChild(name, root.NewPersistentInode(ctx, f, fs.StableAttr{Mode: unix.S_IFREG}), false)
			}
		},
	})
	if err != nil {
		t.Skipf("FUSE cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		done := make(chan error, 1)
		go func() { done <- unmount(server) }()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("unmounting %s: %v", dir, err)
			}
		case <-time.After(10 * time.Second):
			// It is gone from here, but a mount namespace that was made
			// meanwhile, by a simulated host of another test, still has it.
		}
	})
}

// unmount waits for readers that were just released: a detached one ends a
// moment after its read returns.
func unmount(server *fuse.Server) (err error) {
	for range 100 {
		if err = server.Unmount(); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

// File is a file with a text. Its reads are answered when Release is closed,
// if there is one; from the reader's side that wait cannot be interrupted.
type File struct {
	fs.Inode
	Text    string
	Release <-chan struct{}
	Reached chan<- struct{} // gets a value when a read has arrived, if there is room; may be nil
}

// Open bypasses the page cache, as the kernel's own pseudo files do.
func (f *File) Open(context.Context, uint32) (fs.FileHandle, uint32, unix.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read waits, and gives the text.
func (f *File) Read(context.Context, fs.FileHandle, []byte, int64) (fuse.ReadResult, unix.Errno) {
	select {
	case f.Reached <- struct{}{}:
	default:
	}
	if f.Release != nil {
		<-f.Release
	}
	return fuse.ReadResultData([]byte(f.Text)), 0
}
