package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/lib/libtest"
)

// reporter starts the driver of libttmon's tests as a user's program, with its
// ledger where every ttmon finds it.
func reporter(t *testing.T, wrapper ...string) (d *libtest.Driver, dir string) {
	t.Helper()
	if _, err := libtest.Compiler(); err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp(bin, "driver-") // which other users can reach
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = libtest.Build(dir, "plain")
	}
	if err != nil {
		t.Fatal(err)
	}
	line := append(wrapper, filepath.Join(dir, "driver"))
	if d, err = libtest.Start(exec.Command(line[0], line[1:]...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Kill)
	for _, line := range []string{"list 5 0", "alloc 1 4096 640", "push kv-cache", "alloc 1 8192 64"} {
		if _, err := d.Do("%s", line); err != nil {
			t.Fatal(err)
		}
	}
	return d, dir
}

// TestMemOfALedger: what a program says of itself is shown without a daemon,
// and who holds what with it.
func TestMemOfALedger(t *testing.T) {
	hermetic.Long(t)
	d, _ := reporter(t)
	pid := fmt.Sprint(d.Cmd.Process.Pid)
	out, err := exec.Command(filepath.Join(bin, "ttmon"), "mem", "-p", pid, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Processes []struct {
			Allocators []struct {
				Chips []uint64
				Pools []struct {
					Blocks []struct {
						Address uint64
						Site    int
					}
				}
			}
		}
		Sites []callsite.Site
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	site := 0
	for _, b := range doc.Processes[0].Allocators[0].Pools[0].Blocks {
		if b.Address == 8192 {
			site = b.Site
		}
	}
	if len(doc.Sites) != 1 || doc.Sites[0].Number != site || doc.Sites[0].Tag != "kv-cache" || doc.Sites[0].Bytes != 8*64 || doc.Sites[0].Blocks != 1 {
		t.Errorf("sites: %+v, that of the block is %d", doc.Sites, site)
	}
	text, err := exec.Command(filepath.Join(bin, "ttmon"), "mem", "-p", pid, "--once").Output()
	if err != nil || !strings.Contains(string(text), "kv-cache") {
		t.Errorf("%v\n%s", err, text)
	}
	fits, err := exec.Command(filepath.Join(bin, "ttmon"), "mem", "-p", pid, "--fits", "8K").Output()
	if err != nil || !strings.Contains(string(fits), "would 8.0 KiB fit?  yes") {
		t.Errorf("%v\n%s", err, fits)
	}
}

// TestFitsOfADevice: what a device has room for is known from the ledgers of the
// programs that use it, without a daemon.
func TestFitsOfADevice(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "p150a,p150a"})
	ctl(t, h, "run", "name=one,devices=0,kind=ledger,dram=1G,tags=weights")
	out := runIn(t, h, "mem", "--fits", "512M", "-i", "0", "--direct")
	if out.code != 0 || !strings.Contains(out.out, "would 512 MiB fit?  yes") || !strings.Contains(out.out, "weights") {
		t.Errorf("one program: %+v", out)
	}
	ctl(t, h, "run", "name=two,devices=0,kind=ledger,dram=2G")
	out = runIn(t, h, "mem", "--fits", "512M", "-i", "0", "--direct")
	if out.code != 0 || strings.Count(out.out, "would 512 MiB fit?  yes") != 2 {
		t.Errorf("two programs: %+v", out)
	}
	if out = runIn(t, h, "mem", "--fits", "512M", "-i", "1", "--direct"); out.code != 3 || !strings.Contains(out.err, "through ttmond") {
		t.Errorf("a device without programs: %+v", out)
	}
}

// TestLedgerOfARealUser: an account without any right runs its program and looks
// at it; others see it only through root.
func TestLedgerOfARealUser(t *testing.T) {
	hermetic.Long(t)
	hermetic.NeedOtherUsers(t)
	as := func(uid int) []string {
		return []string{"setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", uid), "--clear-groups", "--inh-caps=-all", "--no-new-privs"}
	}
	d, _ := reporter(t, as(65534)...)
	look := func(uid int) string {
		line := append(as(uid), filepath.Join(bin, "ttmon"), "mem", "-p", fmt.Sprint(d.Cmd.Process.Pid), "--once")
		out, _ := exec.Command(line[0], line[1:]...).CombinedOutput()
		return string(out)
	}
	for uid, sees := range map[int]bool{65534: true, 65533: false, 0: true} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if out := look(uid); strings.Contains(out, "kv-cache") != sees {
				t.Errorf("user %d sees it: want %v\n%s", uid, sees, out)
			}
		})
	}
}

// TestHostSnapshotOfPython: the package asks ttmond.
func TestHostSnapshotOfPython(t *testing.T) {
	python := pythonsHere(t)[0]
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, sim.Options{Boards: "n300"})
	d := startDaemon(t, h)
	script := "import sys; sys.path.insert(0, sys.argv[1]); import ttmon\n" +
		"s = ttmon.host_snapshot()\nprint(s['schema'], len(s['devices']))\n" +
		"try:\n    ttmon.host_snapshot(socket_path='/nowhere')\nexcept ConnectionError as e:\n    print('no ttmond' in str(e))\n"
	cmd := exec.Command(python, "-c", script, filepath.Join(root, "lib/python"))
	cmd.Env = append(os.Environ(), "TTMON_SOCKET="+d.api)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "ttmon.snapshot/") || !strings.HasSuffix(string(out), " 1\nTrue\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNativeStacksOnTTNN: with --stacks=all every block has the functions of
// tt-metal and the lines of Python above them.
func TestNativeStacksOnTTNN(t *testing.T) {
	python, script := ttnnScript(t, "sites.py")
	dir := t.TempDir()
	got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--stacks=all", "--json", "a.json", "--", python, script, "3", "20", "keep")
	var report runreport.Report
	read(t, filepath.Join(dir, "a.json"), func(b []byte) error { return json.Unmarshal(b, &report) })
	if len(chipsOf(&report.Run)) != 1 {
		t.Fatal(got.errors)
	}
	places := 0
	for _, pool := range chipsOf(&report.Run)[0].Pools {
		for _, place := range pool.Blocks.LeftBy {
			places++
			var native, lines int
			for _, f := range place.Stack {
				switch {
				case strings.HasSuffix(f.File, "libtt_metal.so") && f.Offset > 0:
					native++
				case strings.HasSuffix(f.File, "sites.py") && f.Line > 0:
					lines++
				}
			}
			if native == 0 || lines == 0 {
				t.Errorf("%d frames of tt-metal, %d of the program: %+v", native, lines, place.Stack)
			}
		}
	}
	if places == 0 {
		t.Error("nothing was left behind")
	}
}
