package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// home is where a self-test of a user may write: what it leaves is seen there.
type home struct{ dir string }

func newHome(t *testing.T, uid int) home {
	t.Helper()
	h := home{t.TempDir()}
	for _, dir := range []string{h.dir, h.tmp()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(h.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h home) tmp() string { return filepath.Join(h.dir, "tmp") }

func (h home) env() []string { return []string{"HOME=" + h.dir, "TMPDIR=" + h.tmp()} }

// notOurs are the files that tt-metal makes for its accounting and keeps, and
// those of the test itself.
var notOurs = regexp.MustCompile(`^(/dev/shm/tt_device_\d+_memory|/tmp/(Test|go-build|ttmon-bin-|ttmon-sim-)[^/]*)$`)

// seen lists the files where a self-test could leave some, and all processes but those
// in which a ttmond reads devices: they come and go.
func (h home) seen(t *testing.T, on *sim.Host) (files, processes []string) {
	t.Helper()
	found := runProgram(t, on, "find", h.dir, "/dev/shm", "/tmp", "-maxdepth", "1")
	deep := runProgram(t, on, "find", h.dir)
	if found.code != 0 || deep.code != 0 {
		t.Fatalf("listing files: %+v %+v", found, deep)
	}
	for _, name := range strings.Fields(found.out + deep.out) {
		if !notOurs.MatchString(name) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range list {
		name, parent := nameAndParent(path)
		if above, _ := nameAndParent("/proc/" + parent); name != "" && (name != "ttmond" || above != "ttmond") {
			processes = append(processes, filepath.Base(path)+" "+name)
		}
	}
	slices.Sort(processes)
	return slices.Compact(files), processes
}

// nameAndParent are a process's name and its parent's number; empty for one that is gone.
func nameAndParent(path string) (name, parent string) {
	b, _ := os.ReadFile(filepath.Join(path, "status"))
	for line := range strings.Lines(string(b)) {
		switch key, value, _ := strings.Cut(line, ":\t"); key {
		case "Name":
			name = strings.TrimSpace(value)
		case "PPid":
			parent = strings.TrimSpace(value)
		}
	}
	return name, parent
}

// leavesNothing plays something, after which files and processes have to be
// those of before; one that was killed may take some time to go.
func (h home) leavesNothing(t *testing.T, on *sim.Host, play func()) {
	t.Helper()
	files, processes := h.seen(t, on)
	play()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		nowFiles, nowProcesses := h.seen(t, on)
		diff := cmp.Diff(files, nowFiles) + cmp.Diff(processes, nowProcesses)
		if diff == "" {
			return
		}
		if time.Now().After(limit) {
			t.Errorf("before (-) and after (+):\n%s", diff)
			return
		}
	}
}

// aloneWithTmp is alone, with a /tmp in which no other test writes.
func aloneWithTmp(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount a /tmp")
	}
	if !alone(t) {
		return false
	}
	hermetic.CoverTmp(t, bin)
	return true
}

// standIn writes a program that can be named as a Python. It knows its release;
// everything else is up to body.
func standIn(t *testing.T, dir, body string) string {
	t.Helper()
	path := filepath.Join(dir, "python")
	text := "#!/bin/sh\nif [ \"$1\" = -c ]; then echo 0.81.1; exit; fi\n" + body + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// failedRows are those with the verdict and a note that says so.
func failedRows(r *report.Report, notes ...string) (n int) {
	for _, row := range r.Rows {
		if row.Verdict == report.Failed && slices.ContainsFunc(notes, func(s string) bool { return strings.Contains(row.Note, s) }) {
			n++
		}
	}
	return n
}

// However the ttnn program ends, or does not, nothing is left of it, and the
// report is the result of the program.
func TestSelftestLeavesNothing(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	if !aloneWithTmp(t) {
		return
	}
	h := start(t, sim.Options{Boards: "n300"})
	newest := ttnn.Interpreter(t, ttnn.Newest)
	for name, tt := range map[string]struct {
		python func(dir string) string
		notes  []string // of failed rows, one of them; none: it succeeds
	}{
		"the real ttnn 0.81.1": {func(string) string { return newest }, nil},
		"the real ttnn 0.71.2": {func(string) string { return ttnn.Interpreter(t, ttnn.AllThreads) }, nil},
		"ttnn fails":           {func(dir string) string { return standIn(t, dir, "echo 'ImportError: no ttnn' >&2; exit 1") }, []string{"ImportError: no ttnn"}},
		"ttnn fails in a step": {func(dir string) string {
			return standIn(t, dir, `export TT_METAL_MOCK_CLUSTER_DESC_PATH=/nowhere; exec `+newest+` "$@"`)
		}, []string{"nowhere"}},
		"ttnn speaks no JSON": {func(dir string) string { return standIn(t, dir, "while read line; do echo hello; done") }, []string{"invalid character"}},
		"ttnn hangs":          {func(dir string) string { return standIn(t, dir, "sleep infinity & sleep infinity") }, []string{"did not end within", "had to end after"}},
		"ttnn hangs in a step": {func(dir string) string {
			return standIn(t, dir, `read line; echo "{\"pid\":$$}"; sleep infinity & sleep infinity`)
		}, []string{"did not end within", "had to end after"}},
	} {
		t.Run(name, func(t *testing.T) {
			user := newHome(t, 0)
			python := tt.python(t.TempDir())
			timeout := "40s"
			if len(tt.notes) == 0 {
				timeout = "5m" // it succeeds, however busy the machine is
			}
			user.leavesNothing(t, h, func() {
				args := append(user.env(), filepath.Join(bin, "ttmon"), "selftest", "--json", "--direct", "--yes", "--timeout", timeout, "--python", python)
				got := runProgram(t, h, "env", args...)
				r := selftested(t, got)
				if wrong := wrongRows(r); len(wrong) > 0 {
					t.Errorf("wrong: %+v", wrong)
				}
				if len(tt.notes) == 0 && (got.code != 0 || r.Count(report.Failed) > 0) || len(tt.notes) > 0 && (got.code != 3 || failedRows(r, tt.notes...) == 0) {
					t.Errorf("exit code %d: %+v", got.code, r.Rows)
				}
			})
		})
	}
}

// Nor is anything left when the user interrupts it.
func TestSelftestInterrupted(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	if !aloneWithTmp(t) {
		return
	}
	h := start(t, sim.Options{Boards: "n300"})
	for name, python := range map[string]func(marker, dir string) string{
		"a program that hangs": func(marker, dir string) string {
			return standIn(t, dir, "sleep infinity & touch "+marker+"; sleep infinity")
		},
		"the real ttnn": func(marker, dir string) string {
			return standIn(t, dir, "touch "+marker+"; exec "+ttnn.Interpreter(t, ttnn.Newest)+` "$@"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			user, dir := newHome(t, 0), t.TempDir()
			marker := filepath.Join(dir, "runs")
			path := python(marker, dir)
			user.leavesNothing(t, h, func() {
				cmd := h.Command(context.Background(), filepath.Join(bin, "ttmon"), "selftest", "--direct", "--yes", "--python", path)
				cmd.Env = append(environment(t), user.env()...)
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				waitForFile(t, marker)
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "interrupted") {
					t.Errorf("%v: %s", err, out.String())
				}
			})
		})
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s is not there", path)
		}
	}
}

// An ordinary user tests as much as root with the real ttnn, with a ttmond and
// without one.
func TestSelftestOfAUsersProgram(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	if !aloneWithTmp(t) {
		return
	}
	hermetic.NeedOtherUsers(t)
	var pythons []string
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		python := ttnn.Interpreter(t, release)
		letEverybodyReach(t, python)
		pythons = append(pythons, python)
	}
	h := start(t, sim.Options{Boards: "n300,p150a"})
	d := startDaemon(t, h)
	for _, python := range pythons {
		for how, flags := range map[string][]string{"with ttmond": {"--daemon", d.api}, "without": {"--direct"}} {
			t.Run(filepath.Base(filepath.Dir(filepath.Dir(python)))+" "+how, func(t *testing.T) {
				const nobody = 65534
				user := newHome(t, nobody)
				user.leavesNothing(t, h, func() {
					args := []string{fmt.Sprintf("--reuid=%d", nobody), fmt.Sprintf("--regid=%d", nobody), "--clear-groups", "--inh-caps=-all", "env"}
					args = append(append(args, user.env()...), filepath.Join(bin, "ttmon"), "selftest", "--json", "--yes", "--python", python)
					got := runProgram(t, h, "setpriv", append(args, flags...)...)
					r := selftested(t, got)
					if got.code != 0 || r.Root || len(wrongRows(r)) > 0 || r.ProgramOn != "mock mode" {
						t.Errorf("exit code %d, wrong: %+v, on %q: %s", got.code, wrongRows(r), r.ProgramOn, got.out)
					}
					watched := map[string]int{"libttmon": 20}
					if how == "with ttmond" {
						watched["uprobes"] = 20
					}
					for by, least := range watched {
						if n := rightBy(r, by); n < least {
							t.Errorf("%d right by %s, want %d or more", n, by, least)
						}
					}
				})
			})
		}
	}
}

// letEverybodyReach lets every user execute a program that is below a folder of
// one user's own: in the mount namespace of this test, such a folder is one that
// everybody may enter, with the same in it.
func letEverybodyReach(t *testing.T, program string) {
	t.Helper()
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, real} {
		for closed := closedAbove(t, path); closed != ""; closed = closedAbove(t, path) {
			openFolder(t, closed)
		}
	}
}

// closedAbove is the first folder on the way to a path that others may not enter.
func closedAbove(t *testing.T, path string) (closed string) {
	t.Helper()
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o001 == 0 {
			closed = dir
		}
	}
	return closed
}

// openFolder covers a folder by one that everybody may enter.
func openFolder(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
		t.Skipf("letting others into %s needs mounts: %v", dir, err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		to := filepath.Join(dir, entry.Name())
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		from := fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), entry.Name())
		if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			t.Fatalf("showing %s again: %v", to, err)
		}
	}
}

// A device that hangs costs its own rows, and nothing else; the test ends.
func TestSelftestOfAHungChip(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string][]string{
		"reads do not return":  {"block", "0", "telemetry"},
		"the heart stands":     {"hang", "0"},
		"all ones":             {"dead", "0"},
		"reads fail":           {"fail", "0", "temp1_input", "EIO"},
		"the heart is unknown": {"fail", "0", "tt_heartbeat", "ENODATA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			impatient(t)
			h := start(t, sim.Options{Boards: "n150,p150a"})
			ctl(t, h, fault...)
			got := runIn(t, h, "selftest", "--json", "--direct")
			r := selftested(t, got)
			if got.code != 0 || len(wrongRows(r)) > 0 || r.Count(report.Failed) > 0 {
				t.Errorf("exit code %d: %+v", got.code, wrongRows(r))
			}
			for _, row := range r.Rows {
				if row.Device != nil && *row.Device == 1 && row.Verdict != report.Right && row.Verdict != report.Bounded {
					t.Errorf("of the other device: %+v", row)
				}
			}
		})
	}
}

// Time that is over is said of every part that was not tested.
func TestSelftestTimeout(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	got := runIn(t, h, "selftest", "--json", "--direct", "--timeout", "1s") // to wait for heartbeats takes longer
	r := selftested(t, got)
	if got.code != 3 || failedRows(r, "had to end after 1s") == 0 || len(wrongRows(r)) > 0 {
		t.Errorf("exit code %d: %+v", got.code, r.Rows)
	}
	if got := runIn(t, h, "selftest", "--timeout", "0s"); got.code != 2 {
		t.Errorf("no time at all: %+v", got)
	}
}

// A simulator of the chip that the environment names is where the program runs,
// also where mock mode is on, and the report says so.
func TestSelftestOnAChipSimulator(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	dir := t.TempDir()
	told := filepath.Join(dir, "told")
	python := standIn(t, dir, "env >"+told+"; echo 'libttsim_wh.so: cannot open' >&2; exit 1")
	for name, tt := range map[string]struct {
		unplug bool
		stage  report.Stage
	}{
		"a host with boards": {false, report.Simulated}, "a host without": {true, report.Simulated},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150"})
			if tt.unplug {
				ctl(t, h, "unplug", "0")
			}
			file := filepath.Join(t.TempDir(), "b.tar.gz")
			got := runProgram(t, h, "env", "TT_METAL_SIMULATOR=/opt/other/libttsim_wh.so", filepath.Join(bin, "ttmon"),
				"selftest", "--json", "--direct", "--yes", "--bundle", file, "--python", python)
			r := selftested(t, got)
			if r.ProgramOn != "chip simulator libttsim_wh.so" || r.Stage != tt.stage || got.code != 3 || failedRows(r, "chip simulator libttsim_wh.so", "cannot open") == 0 {
				t.Errorf("exit code %d, on %q, %s: %+v", got.code, r.ProgramOn, r.Stage, r.Rows)
			}
			env, err := os.ReadFile(told)
			if err != nil || !bytes.Contains(env, []byte("TT_METAL_SIMULATOR=/opt/other/libttsim_wh.so\n")) || bytes.Contains(env, []byte("TT_VISIBLE_DEVICES=")) {
				t.Errorf("what the program was told: %v, %s", err, env)
			}
		})
	}
}

// Under strace: without --python no device node, no resource and no config of a
// device is opened, by ttmon or by any program that it starts; nothing is
// written but terminals and its own folder, and no other process gets a signal.
func TestSelftestTouchesNothing(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is not installed; make test installs it")
	}
	h := start(t, sim.Options{Boards: "n300,p150a"})
	ctl(t, h, "run", "name=job,devices=0,kind=metal,dram=1G")
	log := filepath.Join(t.TempDir(), "strace")
	got := runProgram(t, h, strace, "-f", "--decode-fds=path,pidfd", "-qq", "-o", log, "-e", "trace="+touching, filepath.Join(bin, "ttmon"), "selftest", "--json", "--direct")
	if r := selftested(t, got); got.code != 0 || r.Count(report.Right) < 40 {
		t.Fatalf("%+v", got)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	opens, own := 0, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		own[strings.Fields(line)[0]] = true
	}
	for line := range strings.Lines(string(text)) {
		opens += strings.Count(line, "openat(")
		why := harm(line, `"/dev/ptmx"`, `"/dev/pts/`)
		if why == "a process was disturbed" && own[signalled(line)] {
			why = "" // one that it started
		}
		if why == "" && strings.Contains(line, "/pci") && (strings.Contains(line, `/config"`) || strings.Contains(line, "/resource")) {
			why = "the memory of a device was opened"
		}
		if why != "" {
			t.Errorf("%s: %s", why, line)
		}
	}
	if opens < 100 {
		t.Errorf("strace saw %d opens: this test cannot fail", opens)
	}
}

// signalTarget finds who gets a signal: kill(PID, …, tkill(PID, …,
// pidfd_send_signal(FD<pid:PID>, ….
var signalTarget = regexp.MustCompile(`(?:kill\(-?|pid:)(\d+)`)

func signalled(line string) string {
	if m := signalTarget.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}
