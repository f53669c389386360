package metal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// TestHonest makes the same steps with the real ttnn and with the scripted
// writer. After each of them the two regions must be equal, byte by byte, but
// for pids and times.
func TestHonest(t *testing.T) {
	for _, release := range []string{ttnn.Newest, ttnn.AllThreads} {
		t.Run(release, func(t *testing.T) {
			d := newComparison(t, release)
			a := d.pair()
			d.both(a, ttnn.Step{"do": "open"}, "open %d 0")
			d.both(a, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 128 << 20}, "alloc %d dram 128M")
			d.both(a, ttnn.Step{"do": "alloc", "name": "b", "pool": "l1", "bytes": 2 << 20}, "alloc %d l1 2M")
			if release == ttnn.Newest { // elsewhere, programs are not laid out in mock mode
				d.step(a, ttnn.Step{"do": "add", "name": "c", "of": []string{"b", "b"}})
				cb := binary.LittleEndian.Uint64(d.real()[atTotals+8*int(CB):])
				if cb == 0 {
					t.Fatal("the operation left no circular buffers")
				}
				do(t, a.scripted, fmt.Sprintf("alloc %d l1 2M", p150), fmt.Sprintf("cb %d %d", p150, cb))
				d.compare("add")
			}
			d.both(a, ttnn.Step{"do": "free", "name": "a"}, "free %d dram 128M")

			b := d.pair()
			d.both(b, ttnn.Step{"do": "open"}, "open %d 0")
			d.both(b, ttnn.Step{"do": "alloc", "name": "x", "pool": "dram", "bytes": 1 << 20}, "alloc %d dram 1M")

			// The first is killed; the second ends in peace, and leaves the ghost.
			if err := a.real.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := a.scripted.Kill(); err != nil {
				t.Fatal(err)
			}
			d.compare("kill")
			d.both(b, ttnn.Step{"do": "close", "keep": true}, "close %d")

			c := d.pair()
			d.both(c, ttnn.Step{"do": "open"}, "open %d 0")
			d.both(c, ttnn.Step{"do": "alloc", "name": "x", "pool": "dram", "bytes": 4096}, "alloc %d dram 4K")
			d.both(c, ttnn.Step{"do": "free", "name": "x"}, "free %d dram 4K")
			d.both(c, ttnn.Step{"do": "close"}, "close %d")
		})
	}
}

const p150 = 4476187513037 // the chip id in blackhole_P150.yaml

// comparison runs the same steps in the real ttnn and in a scripted process.
type comparison struct {
	*testing.T
	options ttnn.Options
	shm     string // of the scripted writers; the real ones have /dev/shm
}

type pair struct {
	real     *ttnn.Job
	scripted *Process
}

func newComparison(t *testing.T, release string) *comparison {
	descriptor, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	cleanShm(t)
	return &comparison{T: t, shm: t.TempDir(), options: ttnn.Options{Release: release, Descriptor: descriptor, Dir: t.TempDir()}}
}

func (d *comparison) pair() pair {
	d.Helper()
	job := ttnn.Play(d, d.options)
	p := pair{real: job, scripted: start(d.T, Options{Shm: d.shm})}
	do(d.T, p.scripted, "name python")
	return p
}

func (d *comparison) step(p pair, s ttnn.Step) {
	d.Helper()
	if _, err := p.real.Do(s); err != nil {
		d.Fatal(err)
	}
}

func (d *comparison) both(p pair, s ttnn.Step, command string) {
	d.Helper()
	d.step(p, s)
	do(d.T, p.scripted, fmt.Sprintf(command, uint64(p150)))
	d.compare(fmt.Sprint(s["do"]))
}

func regionPath(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("tt_device_%d_memory", uint64(p150)))
}

func (d *comparison) real() []byte { return d.load("/dev/shm") }

func (d *comparison) load(dir string) []byte {
	d.Helper()
	b, err := os.ReadFile(regionPath(dir))
	if err != nil {
		d.Fatal(err)
	}
	if len(b) != regionSize {
		d.Fatalf("%s has %d bytes", dir, len(b))
	}
	return b
}

func (d *comparison) compare(after string) {
	d.Helper()
	real, scripted := d.load("/dev/shm"), d.load(d.shm)
	mode := func(dir string) os.FileMode {
		st, err := os.Stat(regionPath(dir))
		if err != nil {
			d.Fatal(err)
		}
		return st.Mode()
	}
	if r, s := mode("/dev/shm"), mode(d.shm); r != s {
		d.Errorf("after %s: modes %v and %v", after, r, s)
	}
	mask(real)
	mask(scripted)
	if bytes.Equal(real, scripted) {
		return
	}
	for i := range real {
		if real[i] != scripted[i] {
			at := i &^ 7
			d.Fatalf("after %s: at %d the real region has %x, the scripted one %x", after, at, real[at:at+8], scripted[at:at+8])
		}
	}
}

// mask replaces pids and times by whether there are any.
func mask(region []byte) {
	flag := func(at, n int) {
		set := !bytes.Equal(region[at:at+n], make([]byte, n))
		clear(region[at : at+n])
		if set {
			region[at] = 1
		}
	}
	flag(atUpdated, 8)
	for slot := range slots {
		flag(slot+inPID, 4)
		flag(slot+inUpdated, 8)
	}
}
