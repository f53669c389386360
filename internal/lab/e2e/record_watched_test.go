package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model/apitype"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// health is what the tests ask of a ttmond about itself.
type health struct {
	Uprobe  apitype.Watch
	Budgets []struct {
		Name string
		Used int
	}
}

func (d *daemon) health() (h health) {
	d.t.Helper()
	out := runIn(d.t, d.host, "daemon", "status", "--json", "--daemon", d.api)
	if err := json.Unmarshal([]byte(out.out), &h); err != nil {
		d.t.Fatalf("the health of ttmond: %v\n%s%s", err, out.out, out.err)
	}
	return h
}

// followers is how many clients follow allocations.
func (d *daemon) followers() int {
	d.t.Helper()
	for _, b := range d.health().Budgets {
		if b.Name == "api_followers" {
			return b.Used
		}
	}
	d.t.Fatal("there is no budget for followers")
	return 0
}

// watchingDaemon is a ttmond that watches the newest ttnn through the kernel;
// the test is skipped where that is not permitted.
func watchingDaemon(t *testing.T, h *sim.Host) *daemon {
	t.Helper()
	d := startDaemon(t, h, "--config", watchingFromTheStart(t))
	d.mustWatch()
	d.startServer()
	return d
}

// mustWatch waits until it watches through the kernel; the test is skipped where
// that is not permitted.
func (d *daemon) mustWatch() {
	d.t.Helper()
	if !d.watches() {
		d.t.Skipf("ttmond may not watch through the kernel: %s", d.health().Uprobe.Reason)
	}
}

// watches waits until it is decided whether it watches through the kernel.
func (d *daemon) watches() bool {
	d.t.Helper()
	var w apitype.Watch
	await(d.t, "ttmond watches, or says why it does not", func() bool {
		w = d.health().Uprobe
		return w.State != apitype.WatchStarting
	})
	if w.State != apitype.WatchOn && w.State != apitype.WatchUnavailable { // it is permitted, and does not work
		d.t.Fatalf("watching through the kernel: %+v", w)
	}
	return w.State == apitype.WatchOn
}

// tape is a ttmon record that runs beside a program.
type tape struct {
	t    *testing.T
	cmd  *exec.Cmd
	file string
	said bytes.Buffer
}

func startTape(t *testing.T, h *sim.Host, d *daemon) *tape {
	t.Helper()
	r := &tape{t: t, file: filepath.Join(t.TempDir(), "host.ttrec")}
	r.cmd = h.Command(t.Context(), filepath.Join(bin, "ttmon"), "record", "-o", r.file, "--daemon", d.api)
	r.cmd.Stderr = &r.said
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// hasLogged reports whether an event of ttmond's log has been written.
func (r *tape) hasLogged() bool {
	r.t.Helper()
	rec, err := recording.Open(r.file)
	if err != nil {
		return false // not begun yet
	}
	defer rec.Close()
	c := rec.Begin()
	for x, err := c.Next(); err == nil; x, err = c.Next() {
		if x.Kind == recording.KindEvent && x.Event.Seq > 0 { // only ttmond's have a number
			return true
		}
	}
	return false
}

// end ends it as a user does, and opens what it wrote.
func (r *tape) end() *recording.Reader {
	r.t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		r.t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		r.t.Fatalf("ttmon record: %v\n%s", err, r.said.String())
	}
	rec, err := recording.Open(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { rec.Close() })
	return rec
}

// runNoted runs recorded.py on a simulated host, as anybody would: nothing is
// in it. It returns what its allocator said, and when.
func runNoted(t *testing.T, h *sim.Host, steps string) (moments []noted, pid int) {
	t.Helper()
	python, script := ttnnScript(t, "recorded.py")
	dir := t.TempDir()
	cmd := h.Command(t.Context(), python, script, filepath.Join(dir, "noted"), "1", steps)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), mock(t, "blackhole_P150", dir)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return readNoted(t, filepath.Join(dir, "noted")), cmd.Process.Pid
}

func readNoted(t *testing.T, path string) (moments []noted) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var n noted
		if err := json.Unmarshal(s.Bytes(), &n); err != nil {
			t.Fatal(err)
		}
		moments = append(moments, n)
	}
	return moments
}

// Of an unmodified program that a ttmond watches through the kernel, every
// moment of a recording has the blocks that its allocator said then.
func TestRecordWatched(t *testing.T) {
	hermetic.Long(t)
	h := start(t, sim.Options{Boards: "p150a"})
	d := watchingDaemon(t, h)
	r := startTape(t, h, d)
	await(t, "the recorder follows", func() bool { return d.followers() == 1 })
	ctl(t, h, "run", "name=beside,devices=0,kind=metal,dram=1M")
	await(t, "what ttmond logged is recorded", r.hasLogged)
	moments, _ := runNoted(t, h, "300")
	rec := r.end()
	if len(moments) < 300 {
		t.Fatalf("%d moments were noted", len(moments))
	}
	c := rec.Begin()
	var err error
	var found []recording.Process
	allocations, lost, ended := 0, uint64(0), 0
	take := func(x recording.Record) {
		switch x.Kind {
		case recording.KindProcess:
			found = append(found, *x.Process)
		case recording.KindAlloc:
			allocations++
		case recording.KindLost:
			lost = x.Lost
		case recording.KindEnded:
			ended++
		}
	}
	for i, m := range moments {
		at := time.Unix(0, m.NS)
		var x recording.Record
		for x, err = c.NextUntil(at); err == nil; x, err = c.NextUntil(at) {
			take(x)
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.Pools, held(c.State)); diff != "" {
			t.Fatalf("moment %d of %d: allocator (-) and recording (+):\n%s", i, len(moments), diff)
		}
	}
	for x, err := c.Next(); err == nil; x, err = c.Next() {
		take(x)
	}
	if len(found) == 0 || found[0].Method != recording.ByUprobe || found[len(found)-1].Late || !strings.HasPrefix(found[0].Name, "python") {
		t.Errorf("processes %+v", found)
	}
	if allocations < 150 || lost != 0 || ended != 1 {
		t.Errorf("%d allocations, %d lost, %d ended", allocations, lost, ended)
	}
}

// Where ttmond cannot tell every allocation, blocks are compared, and the
// recording says so, and why.
func TestRecordCompares(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a"})
	d := watchingDaemon(t, h)
	takeFollowers(t, d.api)
	r := startTape(t, h, d)
	j := play(t, h, ttnn.Newest, true)
	for _, s := range []ttnn.Step{{"do": "open"}, {"do": "alloc", "name": "a", "pool": "dram", "bytes": 64 << 20}} {
		if _, err := j.Do(s); err != nil {
			t.Fatal(err)
		}
	}
	var c *recording.Cursor
	await(t, "a block is recorded", func() bool {
		rec, err := recording.Open(r.file)
		if err != nil {
			return false
		}
		defer rec.Close()
		_, last, ok := rec.Span()
		if !ok {
			return false
		}
		c, err = rec.Seek(last)
		return err == nil && len(held(c.State)["dram"]) > 0
	})
	rec := r.end()
	for _, p := range c.Processes() {
		if p.Method != recording.BySampling {
			t.Errorf("process %+v", p)
		}
	}
	events, err := rec.Events()
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, e := range events {
		if strings.Contains(e.Event.Text, "compared once a second") && strings.Contains(e.Event.Text, "429") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("it is said %d times: %+v", said, events)
	}
}

// takeFollowers takes all places for followers of allocations.
func takeFollowers(t *testing.T, socket string) {
	t.Helper()
	for range 100 {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprint(c, "GET /v1/allocations HTTP/1.1\r\nHost: ttmond\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			return
		}
	}
	t.Fatal("anybody may follow")
}

// await waits for what happens soon, however busy the machine is.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it never came to this: %s", what)
		}
	}
}
