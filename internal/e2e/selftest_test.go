package e2e

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/selftest/report"
	"github.com/ttmon/ttmon/internal/sim"
)

// selftested decodes what ttmon selftest --json printed.
func selftested(t *testing.T, r result) *report.Report {
	t.Helper()
	var out report.Report
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	return &out
}

func wrongRows(r *report.Report) (list []report.Row) {
	for _, row := range r.Rows {
		if row.Verdict == report.Wrong {
			list = append(list, row)
		}
	}
	return list
}

// Nothing is wrong on hosts with any number of boards, for root and for others.
func TestSelftest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		boards string
		right  int // at least so many
	}{
		"none": {"", 1}, "one": {"n150", 15}, "three": {"n300,p150a,p100a", 40}, "many": {"32xp150a", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: cmp.Or(tt.boards, "n150")})
			if tt.boards == "" {
				ctl(t, h, "unplug", "0")
			} else {
				ctl(t, h, "run", "name=job,devices=0,kind=metal,dram=1G,l1=8M")
			}
			for who, ask := range map[string]func(...string) result{
				"root":   func(args ...string) result { return runIn(t, h, args...) },
				"nobody": func(args ...string) result { return asNobody(t, h, args...) },
			} {
				got := ask("selftest", "--json", "--direct")
				r := selftested(t, got)
				if wrong := wrongRows(r); got.code != 0 || len(wrong) > 0 || r.Count(report.Right) < tt.right {
					t.Errorf("%s: exit code %d, %d right, wrong: %+v", who, got.code, r.Count(report.Right), wrong)
				}
				if audit := ctl(t, h, "audit"); strings.Contains(audit, `"comm":"ttmon`) {
					t.Errorf("%s: a node was opened: %s", who, audit)
				}
				if r.Stage != report.Simulated || !r.Simulated || r.Root != (who == "root") {
					t.Errorf("%s: %s, %v, %v", who, r.Stage, r.Simulated, r.Root)
				}
			}
		})
	}
}

// What is made wrong on purpose is found: a board that is not what its serial
// number says, a power that voltage and current contradict.
func TestSelftestFindsFalseFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ ctl, what, by string }{
		"card type": {"set 0 tt_card_type n150", "board.type", "code in the serial number"},
		"power":     {"set 0 power1_input 70000000", "power.draw", "voltage × current"},
		"heat":      {"set 0 temp1_input 140000", "temperature.asic", "what silicon survives"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: "n300", Frozen: true})
			ctl(t, h, strings.Fields(tt.ctl)...)
			got := runIn(t, h, "selftest", "--json", "--direct")
			r := selftested(t, got)
			found := slices.ContainsFunc(wrongRows(r), func(row report.Row) bool { return row.What == tt.what && row.By == tt.by })
			if !found || got.code != 1 {
				t.Errorf("exit code %d; %+v", got.code, wrongRows(r))
			}
		})
	}
}

// lies is a ttnn program's site customization that puts a gigabyte more into
// the program's slot of every region than it holds.
const lies = `
import glob, os, struct, threading, time
def lie():
    while True:
        for path in glob.glob("/dev/shm/tt_device_*_memory"):
            with open(path, "r+b") as f:
                for n in range(64):
                    f.seek(856 + 120 * n)
                    pid, = struct.unpack("<i", f.read(4))
                    if pid == os.getpid():
                        f.seek(856 + 120 * n + 8)
                        f.write(struct.pack("<Q", 9 << 30))
        time.sleep(0.01)
threading.Thread(target=lie, daemon=True).start()
`

// With a ttnn program and a ttmond, all that they know is right; a region that
// lies is found.
func TestSelftestOfAProgram(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "n300,p150a"})
	d := startDaemon(t, h)
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		python := ttnn.Interpreter(t, release)
		got := runIn(t, h, "selftest", "--json", "--daemon", d.api, "--yes", "--python", python)
		r := selftested(t, got)
		if wrong := wrongRows(r); got.code != 0 || len(wrong) > 0 || r.Metal != release {
			t.Errorf("%s (%s): exit code %d, wrong: %+v", release, r.Metal, got.code, wrong)
		}
		for _, by := range []string{"uprobes", "libttmon"} {
			if n := rightBy(r, by); n < 20 {
				t.Errorf("%s: %d right by %s, want 20 or more", release, n, by)
			}
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(lies), 0o644); err != nil {
		t.Fatal(err)
	}
	got := runProgram(t, h, "env", "PYTHONPATH="+dir, filepath.Join(bin, "ttmon"), "selftest", "--json", "--direct", "--yes", "--python", ttnn.Interpreter(t, ttnn.Newest))
	r := selftested(t, got)
	found := slices.ContainsFunc(wrongRows(r), func(row report.Row) bool { return strings.Contains(row.What, "DRAM of the program (shared memory)") })
	if !found || got.code != 1 {
		t.Errorf("a region that lies: exit code %d; %+v", got.code, r.Rows)
	}
}

// rightBy counts what is right of what a way of watching a program knows.
func rightBy(r *report.Report, by string) (n int) {
	for _, row := range r.Rows {
		if row.Part == report.Program && row.Verdict == report.Right && strings.Contains(row.What, "("+by+")") {
			n++
		}
	}
	return n
}

// The bundle has the report, and nobody's name.
func TestSelftestBundle(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n300"})
	serial := device(t, smi(t, h, 0), 0).Serial.V
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if got := runIn(t, h, "selftest", "--direct", "--bundle", file); got.code != 0 || !strings.Contains(got.out, "0 wrong") {
		t.Fatalf("%+v", got)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	names := map[string]bool{}
	for r := tar.NewReader(gz); ; {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[filepath.Base(head.Name)] = true
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, private := range []string{serial, "\"" + host + "\""} {
			if strings.Contains(string(text), private) {
				t.Errorf("%s has %q", head.Name, private)
			}
		}
	}
	if !names["selftest.json"] || !names["selftest.txt"] || !names["doctor.json"] {
		t.Errorf("%v", names)
	}
	if got := runIn(t, h, "selftest", "--direct", "--bundle", file); got.code != 2 {
		t.Errorf("a bundle that is there: %+v", got)
	}
}
