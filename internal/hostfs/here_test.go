package hostfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/fusetest"
)

// What is here is read; links, other filesystems and what is above are not.
func TestHere(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "here/sub"), 0o755), os.MkdirAll(filepath.Join(dir, "here/mounted"), 0o755),
		os.WriteFile(filepath.Join(dir, "here/sub/file"), []byte("text"), 0o600),
		os.WriteFile(filepath.Join(dir, "above"), []byte("text"), 0o600),
		os.Symlink("sub", filepath.Join(dir, "here/link")), os.Symlink("sub/file", filepath.Join(dir, "here/filelink")),
		unix.Mkfifo(filepath.Join(dir, "here/fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	fusetest.Mount(t, filepath.Join(dir, "here/mounted"), map[string]fusefs.InodeEmbedder{"file": &fusetest.File{Text: "text", Release: release}})
	t.Cleanup(func() { close(release) })
	d := openTestDir(t, filepath.Join(dir, "here"))
	buf := make([]byte, 16)
	if n, st, err := d.ReadHere("sub/file", buf); string(buf[:n]) != "text" || int(st.Uid) != os.Getuid() || err != nil {
		t.Errorf("%q, uid %d, %v", buf[:n], st.Uid, err)
	}
	for path, want := range map[string]error{
		"fifo": unix.EINVAL, "sub": unix.EINVAL, "sub/gone": unix.ENOENT, "link/file": unix.ENOTDIR, "filelink": unix.ELOOP,
		"mounted/file": unix.EXDEV, "../above": unix.EXDEV,
	} {
		t.Run(path, func(t *testing.T) {
			if _, _, err := d.ReadHere(path, buf); err != want {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		})
	}
	if st, err := d.StatHere("sub/file"); st.Size != 4 || err != nil {
		t.Errorf("%d bytes, %v", st.Size, err)
	}
	if _, err := d.StatHere("mounted/file"); err != unix.EXDEV {
		t.Errorf("on another filesystem: %v", err)
	}
}
