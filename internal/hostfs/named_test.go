package hostfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// namedBatch is a batch for a few files that its reader opens.
func namedBatch(t *testing.T) *Batch {
	t.Helper()
	b, err := NewBatch(8, 8*64+NamedBytes(8, 8))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// twoDirs is a root with the files /one/a, /one/b, a link /one/link to it, and
// /two/a.
func twoDirs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, sub := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one/a", "one/b", "two/a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b", filepath.Join(dir, "one/link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNamedFiles has a reader open the files it reads, in several directories,
// among descriptors of ours. One that it cannot open is told from one that it
// cannot read, and costs the others nothing.
func TestNamedFiles(t *testing.T) {
	for name, start := range ways {
		t.Run(name, func(t *testing.T) {
			root, b := At(twoDirs(t)), namedBatch(t)
			type want struct {
				text     string
				err      error
				unopened bool
			}
			var wanted []want
			add := func(dir, name string, w want) {
				t.Helper()
				i, err := b.AddFile(root, dir, name, 64)
				if err != nil || i != len(wanted) {
					t.Fatalf("AddFile(%s, %s) is %d, %v", dir, name, i, err)
				}
				wanted = append(wanted, w)
			}
			add("/one", "a", want{text: "one/a\n"})
			add("/one", "none", want{err: unix.ENOENT, unopened: true})
			add("/one", "link", want{err: unix.ELOOP, unopened: true})
			b.Add(openFile(t, "ours\n"), 64)
			wanted = append(wanted, want{text: "ours\n"})
			add("/one", "b", want{text: "one/b\n"})
			add("/none", "a", want{err: unix.ENOENT, unopened: true})
			add("/two", "a", want{text: "two/a\n"})
			add("/two", ".", want{err: unix.EISDIR})
			before, _ := count(t)
			if err := start(b); err != nil {
				t.Fatal(err)
			}
			Wait([]*Batch{b}, time.Now().Add(20*time.Second))
			for i, w := range wanted {
				got, err := b.Result(i)
				if string(got) != w.text || !errors.Is(err, w.err) || b.Unopened(i) != w.unopened {
					t.Errorf("read %d: %q, %v, unopened %t, want %+v", i, got, err, b.Unopened(i), w)
				}
			}
			for after, _ := count(t); after != before; after, _ = count(t) {
				time.Sleep(time.Millisecond) // a thread closes its last one after it has reported
			}
		})
	}
}

// TestNamedFilesAgain uses a batch again: what an earlier round could not open
// is no error of a later one, and its directory is not that of a later one.
func TestNamedFilesAgain(t *testing.T) {
	root, b := At(twoDirs(t)), namedBatch(t)
	for _, name := range []string{"none", "a"} {
		if _, err := b.AddFile(root, "/one", name, 64); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		Wait([]*Batch{b}, time.Now().Add(20*time.Second))
		if b.Unopened(0) != (name == "none") {
			_, err := b.Result(0)
			t.Errorf("%s: unopened is %t, %v", name, b.Unopened(0), err)
		}
		b.Reset()
	}
}

// TestNamedFilesOfARelativeRoot has a root that is named from the current
// directory, which the reader leaves, and we do not.
func TestNamedFilesOfARelativeRoot(t *testing.T) {
	t.Chdir(filepath.Dir(twoDirs(t)))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(here)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	root, b := At(entries[0].Name()), namedBatch(t)
	for _, dir := range []string{"/one", "/two"} {
		if _, err := b.AddFile(root, dir, "a", 64); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	Wait([]*Batch{b}, time.Now().Add(20*time.Second))
	for i, want := range []string{"one/a\n", "two/a\n"} {
		if got, err := b.Result(i); string(got) != want || err != nil {
			t.Errorf("read %d: %q, %v", i, got, err)
		}
	}
	if now, err := os.Getwd(); now != here || err != nil {
		t.Errorf("the current directory is %s, %v, it was %s", now, err, here)
	}
}

func TestNamedFilesThatAreRefused(t *testing.T) {
	b := namedBatch(t)
	for _, dir := range []string{"/dev", "/dev/tenstorrent", "/proc/1/fd", "/proc/1/root/dev"} {
		if _, err := b.AddFile(Root{}, dir, "0", 64); err == nil || !strings.Contains(err.Error(), "never opened") {
			t.Errorf("a file in %s: %v", dir, err)
		}
	}
	if _, err := b.AddFile(Root{}, "/"+strings.Repeat("d", maxPath), "f", 64); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("a path that is too long: %v", err)
	}
	if !panics(func() { b.AddFile(Root{}, "/sys", "../dev/tenstorrent/0", 64) }) {
		t.Error("a path passes for a name")
	}
	if b.n != 0 {
		t.Errorf("%d reads were added", b.n)
	}
}
