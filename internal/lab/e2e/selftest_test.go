package e2e

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
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

// Nothing is wrong on hosts with any number of boards, for root and for others,
// with a ttmond and without one.
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
			d := startDaemon(t, h)
			if tt.boards == "" {
				ctl(t, h, "unplug", "0")
			} else {
				ctl(t, h, "run", "name=job,devices=0,kind=metal,dram=1G,l1=8M")
			}
			check := func(who string, got result) {
				r := selftested(t, got)
				if wrong := wrongRows(r); got.code != 0 || len(wrong) > 0 || r.Count(report.Right) < tt.right {
					t.Errorf("%s: exit code %d, %d right, wrong: %+v", who, got.code, r.Count(report.Right), wrong)
				}
				if audit := ctl(t, h, "audit"); strings.Contains(audit, `"comm":"ttmon`) {
					t.Errorf("%s: a node was opened: %s", who, audit)
				}
				if r.Stage != report.Simulated || !r.Simulated || r.Root != strings.HasPrefix(who, "root") {
					t.Errorf("%s: %s, %v, %v", who, r.Stage, r.Simulated, r.Root)
				}
				if beats := rightOf(r, "heartbeat, before and after"); tt.boards != "" && beats == 0 {
					t.Errorf("%s: no heartbeat was compared", who)
				}
			}
			check("root", runIn(t, h, "selftest", "--json", "--direct"))
			check("nobody", asNobody(t, h, "selftest", "--json", "--direct"))
			for who, got := range map[string]result{
				"root with ttmond":   runIn(t, h, "selftest", "--json", "--daemon", d.api),
				"nobody with ttmond": asNobody(t, h, "selftest", "--json", "--daemon", d.api),
			} {
				check(who, got)
				if r := selftested(t, got); rightOf(r, "release of ttmond") != 1 || rightOf(r, "snapshot of ttmond") != 1 {
					t.Errorf("%s: ttmond was not compared: %+v", who, r.Rows)
				}
			}
		})
	}
}

// A chip that ttmond knows is hung is no fault of ttmon's: its values are unknown, and
// its state is compared once the test has read it for long enough.
func TestSelftestKnowsWhatTtmondKnows(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "n300,p150a"})
	d := startDaemon(t, h)
	ctl(t, h, "hang", "0")
	await(t, "that ttmond notices", func() bool {
		return strings.Contains(runIn(t, h, "smi", "--daemon", d.api, "--query-device=state", "--format=csv,noheader").out, "hung")
	})
	got := runIn(t, h, "selftest", "--json", "--daemon", d.api)
	r := selftested(t, got)
	if wrong := wrongRows(r); got.code != 0 || len(wrong) > 0 {
		t.Errorf("exit code %d, wrong: %+v", got.code, wrong)
	}
	if rightOf(r, "snapshot of ttmond") != 1 || rightOf(r, "state by ttmond") != 1 {
		t.Errorf("ttmond's state was not compared: %+v", r.Rows)
	}
	for _, row := range r.Rows {
		if row.Part == report.Devices && row.Device != nil && *row.Device == 0 && (row.Verdict != report.Unknown || row.Note != "the chip is hung: its values are stale") {
			t.Errorf("a value of the hung chip: %+v", row)
		}
	}
}

// rightOf counts the rows about something that agree.
func rightOf(r *report.Report, what string) (n int) {
	for _, row := range r.Rows {
		if row.What == what && row.Verdict == report.Right {
			n++
		}
	}
	return n
}

// What is made wrong on purpose is found, on the last of any number of boards: a
// board that is not what its serial number says, a power that voltage and current
// contradict, what no chip can do.
func TestSelftestFindsFalseFiles(t *testing.T) {
	t.Parallel()
	for _, hosts := range []struct {
		boards string
		last   int
	}{{"n300", 0}, {"p150a,n150,n300", 2}, {"31xp150a,n300", 31}} {
		for name, tt := range map[string]struct{ file, text, what, by string }{
			"card type":   {"tt_card_type", "n150", "board.type", "code in the serial number"},
			"card's id":   {"tt_card_type", "n150", "board.type", "PCI subsystem id"},
			"serial":      {"tt_serial", "0000046131900001", "board.type", "code in the serial number"},
			"power":       {"power1_input", "70000000", "power.draw", "voltage × current"},
			"current":     {"curr1_input", "90000", "power.draw", "voltage × current"},
			"voltage":     {"in0_input", "300", "power.draw", "voltage × current"},
			"heat":        {"temp1_input", "140000", "temperature.asic", "what silicon survives"},
			"clock":       {"tt_aiclk", "1900", "clocks.ai", "the board catalogue"},
			"link speed":  {"current_link_speed", "64.0 GT/s PCIe", "pcie.link.current", "what the device can do"},
			"link width":  {"current_link_width", "32", "pcie.link.current", "what the device can do"},
			"still heart": {"tt_heartbeat", "7", "heartbeat, before and after", "tt_heartbeat, read by grep"},
		} {
			if hosts.last > 2 && name != "power" && name != "serial" { // one is as good as the other there
				continue
			}
			t.Run(fmt.Sprintf("%d boards, %s", hosts.last+1, name), func(t *testing.T) {
				t.Parallel()
				h := start(t, sim.Options{Boards: hosts.boards, Frozen: true})
				ctl(t, h, "set", strconv.Itoa(hosts.last), tt.file, tt.text)
				got := runIn(t, h, "selftest", "--json", "--direct")
				r := selftested(t, got)
				found := false
				for _, row := range r.Rows {
					found = found || row.What == tt.what && row.By == tt.by && row.Device != nil && *row.Device == hosts.last && noticed(row)
				}
				if !found {
					t.Errorf("exit code %d; %+v", got.code, r.Rows)
				}
			})
		}
	}
}

// noticed reports whether a row shows that a figure cannot be right: it is wrong,
// or ttmon itself has noticed that the chip does not live.
func noticed(row report.Row) bool {
	return row.Verdict == report.Wrong || row.Ours == "hung" && row.Witness == "stands still"
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
	hermetic.Long(t)
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "n300,p150a"})
	d := startDaemon(t, h)
	watchers := []string{"uprobes", "libttmon"}
	if !d.watches() {
		watchers = watchers[1:]
	}
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		python := ttnn.Interpreter(t, release)
		got := runIn(t, h, "selftest", "--json", "--daemon", d.api, "--yes", "--python", python)
		r := selftested(t, got)
		if wrong := wrongRows(r); got.code != 0 || len(wrong) > 0 || r.Metal != release {
			t.Errorf("%s (%s): exit code %d, wrong: %+v", release, r.Metal, got.code, wrong)
		}
		for _, by := range watchers {
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

// A ttmond that does not watch through the kernel is not held to what it would then see.
func TestSelftestWithoutUprobes(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "p150a"})
	d := startDaemon(t, h, "--config", withoutProbes(t))
	got := runIn(t, h, "selftest", "--json", "--daemon", d.api, "--yes", "--python", ttnn.Interpreter(t, ttnn.Newest))
	r := selftested(t, got)
	if got.code != 0 || len(wrongRows(r)) > 0 || rightBy(r, "libttmon") < 20 {
		t.Errorf("exit code %d: %s%s", got.code, got.out, got.err)
	}
	if !slices.ContainsFunc(r.Rows, func(row report.Row) bool {
		return row.Part == report.Optional && row.What == "uprobes" && row.Verdict == report.Unknown
	}) {
		t.Errorf("that uprobes are off is not said: %+v", r.Rows)
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

// The bundle has the report, and no user's name.
func TestSelftestBundle(t *testing.T) {
	hermetic.Long(t)
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
	rowOfBoards(t, file)
	if got := runIn(t, h, "selftest", "--direct", "--bundle", file); got.code != 2 {
		t.Errorf("a bundle that is there: %+v", got)
	}
}

// rowOfBoards turns a bundle into a row of docs/boards.md, with the command that
// stands there.
func rowOfBoards(t *testing.T, bundle string) {
	t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/boards.md"))
	if err != nil {
		t.Fatal(err)
	}
	const command = "go run ./tools/boards -w docs/boards.md selftest.tar.gz"
	if !strings.Contains(string(text), "`"+command+"`") {
		t.Errorf("docs/boards.md does not name the command %q", command)
	}
	page := filepath.Join(t.TempDir(), "boards.md")
	if err := os.WriteFile(page, text, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "./tools/boards", "-w", page, bundle)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`\n\| 1× n300 \| 19\.9\.0\.0 \| 2\.10\.0 \| – \| simulated \| [^|]+ \| \d+ right, 0 bounded, 0 wrong \| \d{4}-\d\d-\d\d \|\n`).Match(got) {
		t.Errorf("no such row:\n%s", got)
	}
}
