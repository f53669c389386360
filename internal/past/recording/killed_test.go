package recording

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
)

// writesTo makes the test binary a program that does nothing but what is dangerous
// to be killed in: a file begins, key blocks, what is kept around an alert, the end
// of a file.
const writesTo = "RECORDING_WRITES_TO"

func writeTo(dir string) error {
	runtime.LockOSThread() // strace counts the calls of a kind for each thread
	w, err := Create(filepath.Join(dir, "writer.ttrec"), false)
	if err != nil {
		return err
	}
	if err := errors.Join(keyBlocks(w.Encoder, 10, w.Flush), w.Close()); err != nil {
		return err
	}
	if w, err = Resume(filepath.Join(dir, "writer.ttrec")); err != nil {
		return err
	}
	if err := errors.Join(keyBlocks(w.Encoder, 2, w.Sync), w.Close()); err != nil {
		return err
	}
	return copyTo(filepath.Join(dir, "writer.ttrec"), filepath.Join(dir, "copy.ttrec"))
}

// copyTo makes a recording of another's records, from a time on.
func copyTo(from, to string) error {
	r, err := Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := Create(to, false)
	if err != nil {
		return err
	}
	err = r.ScanFrom(at(0), func(kind Kind, ns int64, body []byte) error {
		return errors.Join(w.Tick(time.Unix(0, ns), time.Second), w.Add(kind, time.Unix(0, ns), body))
	})
	return errors.Join(err, w.Close())
}

// keyBlocks makes blocks that are key blocks with a thousand live blocks each.
func keyBlocks(e *Encoder, n int, cut func() error) error {
	err := errors.Join(e.Process(t0, Process{ID: 1, PID: 42, Method: ByLedger}),
		e.List(t0, List{ID: 2, Process: 1, Pool: "dram", Geometry: blocks.Geometry{Banks: 8, Capacity: 1 << 40}}))
	for i := range 1000 {
		err = errors.Join(err, e.Alloc(at(0), 2, blocks.Block{Addr: uint64(i) << 20, Size: uint64(i) + 1}))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for s := range n {
		for range 1000 { // as much as a key block has, or there is none
			i := rng.IntN(1000)
			err = errors.Join(err, e.Free(at(float64(30*s)), 2, uint64(i)<<20), e.Alloc(at(float64(30*s)), 2, blocks.Block{Addr: uint64(i) << 20, Size: uint64(rng.IntN(1000)) + 1}))
		}
		if err = errors.Join(err, cut()); err != nil {
			return err
		}
	}
	return nil
}

// A writer that is killed leaves files that open, and nothing else but what Unnamed
// lists. It is killed at each system call that changes a file; what is left of a
// write that was under way is in TestCutAnywhere.
func TestKilledWriter(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: tools/setup test installs it")
	}
	if out, err := exec.Command(strace, "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v: %s", err, out)
	}
	files, unnamed, kills := 0, 0, 0
	for _, call := range []string{"write", "pwrite64", "linkat", "unlinkat", "fsync", "fdatasync"} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			cmd := exec.Command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), os.Args[0])
			cmd.Env = append(os.Environ(), writesTo+"="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil && !strings.Contains(err.Error(), "killed") {
				t.Fatalf("%v\n%s", err, out)
			}
			list := recordings(t, dir)
			for _, path := range list {
				whole(t, path)
			}
			left := Unnamed(dir)
			all, readErr := os.ReadDir(dir)
			ok(t, readErr)
			if len(all) != len(left)+len(list) {
				t.Errorf("killed at %s %d: left behind: %v", call, n, all)
			}
			files, unnamed = files+len(list), unnamed+len(left)
			if err == nil {
				break // it came to its end
			}
			kills++
		}
	}
	if kills < 20 || files < 20 || unnamed < 4 {
		t.Errorf("killed %d times: %d recordings, %d files that have no name yet", kills, files, unnamed)
	}
}

// whole holds a file against what keyBlocks writes, up to its end.
func whole(t *testing.T, path string) {
	t.Helper()
	r, err := Open(path)
	ok(t, err)
	defer r.Close()
	c := r.Begin()
	for err = error(nil); err == nil; {
		_, err = c.Next()
	}
	_, live, known := c.List(2)
	if !errors.Is(err, io.EOF) || r.Damaged > 0 || r.Torn || known && live.Usage().Blocks != 1000 {
		t.Errorf("%s: %v, %d damaged, torn %v", path, err, r.Damaged, r.Torn)
	}
}

func recordings(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.ttrec"))
	ok(t, err)
	return list
}
