package ledgerfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/lib/libtest"
)

// sample is a small ledger as the library writes it, without the holes of its
// file: the sections are moved together.
func sample(t testing.TB) []byte {
	t.Helper()
	if _, err := libtest.Compiler(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := libtest.Build(dir, "static"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "driver"))
	cmd.Env = append(os.Environ(), "TTMON_DIR="+dir)
	d, err := libtest.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Kill()
	for _, line := range []string{"list 7 0", "list 8 1", "push tag", "alloc 1 4096", "pop", "alloc 1 8192", "stacks 2", "alloc 2 4096", "free 1 8192", "close 2"} {
		if _, err := d.Do("%s", line); err != nil {
			t.Fatal(err)
		}
	}
	path, err := d.Do("path")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := append([]byte(nil), image[:fullHeader]...)
	for i := range numSections {
		b := out[offSections+i*sectionSize:]
		from, n := le.Uint64(b), uint64(le.Uint32(b[16:]))*uint64(recordSize[i])
		le.PutUint64(b, uint64(len(out)))
		out = append(out, image[from:from+n]...)
	}
	return out
}

// memoryFile is a file of these bytes.
func memoryFile(t testing.TB, b []byte) int {
	t.Helper()
	fd, err := unix.MemfdCreate("ledger", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Pwrite(fd, b, 0); err != nil && len(b) > 0 {
		t.Fatal(err)
	}
	return fd
}

// FuzzRead feeds damaged ledgers to the reader. Whatever it makes of them holds
// together: numbers lead somewhere, sums of what is cut fit the blocks.
func FuzzRead(f *testing.F) {
	good := sample(f)
	f.Add(good)
	f.Add(good[:headerSize])
	f.Add(good[:len(good)-1])
	f.Add([]byte(magic))
	odd := append([]byte(nil), good...)
	odd[offEpoch] |= 1
	f.Add(odd)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		fd := memoryFile(t, b)
		defer unix.Close(fd)
		_, _, _, _ = new(Reader).Events(fd, 0, nil)
		if l, err := new(Reader).Places(fd); err == nil {
			_ = l.Stack(1)
			_ = l.Text(4)
		}
		l, err := new(Reader).Read(fd)
		if err != nil {
			if l != nil {
				t.Error("an error and a ledger")
			}
			return
		}
		for _, x := range l.Lists {
			for _, c := range x.Chips {
				_ = l.Chips[c]
			}
		}
		sums := make([]Sum, len(l.Lists))
		for _, x := range l.Blocks {
			site := l.Sites[x.Site]
			if l.Lists[site.List].State != Open {
				t.Errorf("a block of list %d, which is not open", site.List)
			}
			sums[site.List].Bytes += x.Bytes
			sums[site.List].Blocks++
		}
		for i, x := range l.Lists {
			if (l.Cut || l.Moving) && x.Live != sums[i] {
				t.Errorf("list %d: %+v, blocks %+v", i, x.Live, sums[i])
			}
		}
		for _, s := range l.Sites {
			if n := len(l.Stack(s.Node)); n > maxDepth {
				t.Errorf("a stack of %d frames", n)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	good := sample(t)
	if l, err := new(Reader).Read(memoryFile(t, good)); err != nil || len(l.Blocks) != 1 || l.Lists[1].Live.Blocks != 1 {
		t.Fatalf("the sample: %+v, %v", l, err)
	}
	damage := func(at int, v byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = v
		return b
	}
	var version *VersionError
	for name, c := range map[string]struct {
		image []byte
		want  func(error) bool
	}{
		"empty":        {nil, func(err error) bool { return errors.Is(err, ErrNotReady) }},
		"no magic yet": {make([]byte, 4096), func(err error) bool { return errors.Is(err, ErrNotReady) }},
		"other magic":  {damage(0, 'x'), func(err error) bool { return errors.Is(err, ErrDamaged) }},
		"version 2":    {damage(offVersion, 2), func(err error) bool { return errors.As(err, &version) && version.Version == 2 }},
		"record size":  {damage(offSections+8, 17), func(err error) bool { return errors.Is(err, ErrDamaged) }},
		"too many":     {damage(offSections+19, 0xff), func(err error) bool { return errors.Is(err, ErrDamaged) }},
		"cut off":      {good[:len(good)-10], func(err error) bool { return errors.Is(err, ErrDamaged) }},
	} {
		if _, err := new(Reader).Read(memoryFile(t, c.image)); err == nil || !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
