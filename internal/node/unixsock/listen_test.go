package unixsock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "s.sock") }

func listen(t *testing.T, o Options) int {
	t.Helper()
	fd, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestModeAndGroup(t *testing.T) {
	for _, o := range []Options{{}, {Mode: 0o660, GID: os.Getegid()}} {
		t.Run(fmt.Sprintf("mode %v", o.Mode), func(t *testing.T) {
			o.Path = path(t)
			listen(t, o)
			st, err := os.Lstat(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			want := o.Mode
			if want == 0 {
				want = 0o666
			}
			if st.Mode().Perm() != want {
				t.Errorf("mode %v, want %v", st.Mode().Perm(), want)
			}
		})
	}
}

// A socket whose server has exited is replaced.
func TestStaleSocket(t *testing.T) {
	p := path(t)
	fd, err := Listen(Options{Path: p})
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	listen(t, Options{Path: p})
	c, err := net.Dial("unix", p)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// A socket with a server that does not hold our lock is left alone.
func TestLiveSocket(t *testing.T) {
	p := path(t)
	other, err := net.Listen("unix", p)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := Listen(Options{Path: p}); !errors.Is(err, ErrLive) || !strings.Contains(err.Error(), p) {
		t.Errorf("error %v, want one that says that %s is served", err, p)
	}
	if _, err := net.Dial("unix", p); err != nil {
		t.Errorf("the other server cannot be reached any more: %v", err)
	}
}

func TestWhatIsNoSocket(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(precious, []byte("x"), 0o600), os.Symlink(precious, link)); err != nil {
		t.Fatal(err)
	}
	for p, word := range map[string]string{
		link: "symbolic link", precious: "not a socket", dir: "not a socket",
		filepath.Join(dir, strings.Repeat("x", 200)): "107",
	} {
		t.Run(filepath.Base(p), func(t *testing.T) {
			if _, err := Listen(Options{Path: p}); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: error %v, want one with %q", p, err, word)
			}
		})
	}
	if b, err := os.ReadFile(precious); err != nil || string(b) != "x" {
		t.Errorf("the file is now %q, %v", b, err)
	}
	if target, err := os.Readlink(link); err != nil || target != precious {
		t.Errorf("the link is now %q, %v", target, err)
	}
}

func TestLock(t *testing.T) {
	p := path(t)
	fd, err := Lock(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(p); !errors.Is(err, ErrLive) || !strings.Contains(err.Error(), "held by pid") {
		t.Errorf("second lock: %v", err)
	}
	// A successor has the lock as long as it has the descriptor.
	dup, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if _, err := Lock(p); !errors.Is(err, ErrLive) {
		t.Errorf("lock while the successor has it: %v", err)
	}
	unix.Close(dup)
	fd, err = Lock(p)
	if err != nil {
		t.Fatalf("lock after everybody is gone: %v", err)
	}
	unix.Close(fd)
}

func TestLockFollowsNothing(t *testing.T) {
	p := path(t)
	precious := filepath.Join(filepath.Dir(p), "precious")
	if err := errors.Join(os.WriteFile(precious, []byte("x"), 0o600), os.Symlink(precious, p+".lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(p); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(precious); string(b) != "x" {
		t.Errorf("the file behind the link is now %q", b)
	}
	if err := errors.Join(os.Remove(p+".lock"), unix.Mkfifo(p+".lock", 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(p); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("error %v", err)
	}
}

// A lock file that others could lock or that is another's is rejected or fixed,
// and never written to.
func TestLockOfOthers(t *testing.T) {
	p := path(t)
	precious := filepath.Join(filepath.Dir(p), "precious")
	if err := errors.Join(os.WriteFile(precious, []byte("x"), 0o600), os.Link(precious, p+".lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(p); err == nil || !strings.Contains(err.Error(), "hard links") {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(precious); string(b) != "x" {
		t.Errorf("the file behind the link is now %q", b)
	}
	if err := errors.Join(os.Remove(p+".lock"), os.WriteFile(p+".lock", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	fd, err := Lock(p)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if st, err := os.Stat(p + ".lock"); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if os.Getuid() != 0 {
		return
	}
	q := path(t)
	if err := errors.Join(os.WriteFile(q+".lock", nil, 0o600), os.Chown(q+".lock", 65534, -1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(q); err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("error %v", err)
	}
}

func TestOwnDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := OwnDir(dir); err != nil {
		t.Error(err)
	}
	for _, mode := range []os.FileMode{0o777, 0o775, 0o777 | os.ModeSticky} {
		t.Run(mode.String(), func(t *testing.T) {
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			if err := OwnDir(dir); err == nil || !strings.Contains(err.Error(), "others may write") {
				t.Errorf("mode %v: error %v", mode, err)
			}
		})
	}
	if os.Getuid() != 0 {
		return
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, 65534, -1)); err != nil {
		t.Fatal(err)
	}
	if err := OwnDir(dir); err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Errorf("error %v", err)
	}
}
