package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/lab/sim/cluster"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/lib/libtest"
)

// ranWith is what a `ttmon run` gave.
type ranWith struct {
	code        int
	out, errors string
}

// ttmonRun runs `ttmon run` with these arguments.
func ttmonRun(t *testing.T, dir string, env []string, args ...string) ranWith {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "ttmon"), append([]string{"run"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache")), env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok && exit.ExitCode() < 0 {
		t.Fatalf("ttmon run was killed: %v\n%s", err, complaints.String())
	}
	return ranWith{cmd.ProcessState.ExitCode(), out.String(), complaints.String()}
}

// chipsOf are the chips of a run.
func chipsOf(r *runs.Run) (list []runs.Chip) {
	for _, c := range r.Chips() {
		list = append(list, *c)
	}
	return list
}

// Whatever the program does, it comes out as it would without us.
func TestRunIsTransparent(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		out  string
	}{
		"success":        {[]string{"--", "echo", "hello"}, 0, "hello\n"},
		"no summary":     {[]string{"-q", "--", "echo", "hello"}, 0, "hello\n"},
		"its exit code":  {[]string{"--", "sh", "-c", "exit 7"}, 7, ""},
		"its death":      {[]string{"--", "sh", "-c", "kill -TERM $$"}, 128 + int(unix.SIGTERM), ""},
		"not there":      {[]string{"--", "no-such-program"}, 127, ""},
		"not a program":  {[]string{"--", "/etc/passwd"}, 126, ""},
		"its own flags":  {[]string{"echo", "-n", "--json", "smi", "-l"}, 0, "--json smi -l"},
		"nothing to run": {nil, 2, ""},
		"a wrong size":   {[]string{"--max", "dram=x", "--", "true"}, 2, ""},
		"a wrong pool":   {[]string{"--max", "hbm=1G", "--", "true"}, 2, ""},
		"its preload":    {[]string{"--", "sh", "-c", `case $LD_PRELOAD in *libttmon*) echo ours;; esac`}, 0, "ours\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ttmonRun(t, dir, nil, c.args...)
			if got.code != c.code || got.out != c.out {
				t.Errorf("exit code %d, want %d; output %q, want %q\n%s", got.code, c.code, got.out, c.out, got.errors)
			}
			quiet := slices.Contains(c.args, "-q")
			if summary := strings.HasPrefix(got.errors, "ttmon: "); c.code == 0 && summary == quiet || quiet && got.errors != "" {
				t.Errorf("standard error, which is no terminal: %q", got.errors)
			}
		})
	}
}

func TestRunPassesSignals(t *testing.T) {
	cmd := exec.Command(filepath.Join(bin, "ttmon"), "run", "--", "sh", "-c", `trap 'echo got it; exit 5' USR1; echo ready; while :; do sleep 0.05; done`)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	if err != nil || string(buf[:n]) != "ready\n" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if err := cmd.Process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	n, _ = out.Read(buf)
	if string(buf[:n]) != "got it\n" {
		t.Errorf("the program says %q", buf[:n])
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Errorf("exit: %v", err)
	}
}

// mock is the environment of a ttnn program on a mock board.
func mock(t *testing.T, descriptor, dir string) []string {
	t.Helper()
	path, err := ttnn.Descriptor(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"TT_METAL_MOCK_CLUSTER_DESC_PATH=" + path, "TT_METAL_LOGS_PATH=" + dir, "TT_METAL_CACHE=" + filepath.Join(dir, "kernels"),
		"HOME=" + dir, "TT_LOGGER_LEVEL=error",
	}
}

// ttnnScript is a program of testdata/ttnn and the Python that runs it.
func ttnnScript(t *testing.T, name string) (python, script string) {
	t.Helper()
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	return ttnn.Interpreter(t, ttnn.Newest), filepath.Join(root, "testdata/ttnn", name)
}

func TestRunOnTTNN(t *testing.T) { // alone: it looks for ledgers that are left
	ledgers := func() []string {
		list, _ := filepath.Glob("/dev/shm/ttmon-ledger-*")
		return list
	}
	before := ledgers() // of tests that killed a process
	python, script := ttnnScript(t, "sites.py")
	dir := t.TempDir()
	got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--stacks", "--json", "a.json", "--junit", "a.xml", "--pprof", "a.pb.gz", "--flame", "a.svg",
		"--fail-on-leak=0", "--", python, script, "3", "60", "keep")
	if got.code != 90 {
		t.Errorf("exit code %d, want 90: it keeps tensors\n%s", got.code, got.errors)
	}
	for _, want := range []string{"exact (libttmon, ttnn 0.81.1)", "chip 4476187513037", "peak of DRAM", "still allocated", "run: failed: ", "sites.py:"} {
		if !strings.Contains(got.errors, want) {
			t.Errorf("the summary has no %q:\n%s", want, got.errors)
		}
	}
	var report runreport.Report
	read(t, filepath.Join(dir, "a.json"), func(b []byte) error { return json.Unmarshal(b, &report) })
	if report.Schema != runreport.Schema || report.Method != runreport.Ledger || len(chipsOf(&report.Run)) != 1 || report.Left().Blocks == 0 {
		t.Errorf("report: %+v", report)
	}
	var suite struct {
		Failures int `xml:"failures,attr"`
	}
	read(t, filepath.Join(dir, "a.xml"), func(b []byte) error { return xml.Unmarshal(b, &suite) })
	if suite.Failures == 0 {
		t.Error("no failure in the file for CI")
	}
	read(t, filepath.Join(dir, "a.pb.gz"), func(b []byte) error {
		p, err := profile.ParseData(b)
		if err != nil {
			return err
		}
		sums := make([]int64, len(p.SampleType))
		for _, s := range p.Sample {
			for i, v := range s.Value {
				sums[i] += v
			}
		}
		var peak, left int64
		for _, x := range chipsOf(&report.Run)[0].Pools {
			peak, left = peak+int64(x.Peak), left+int64(x.Blocks.Left.Bytes)
		}
		if sums[5] != peak || sums[3] != left {
			return fmt.Errorf("sums %v, want %d at the peak and %d left", sums, peak, left)
		}
		return nil
	})
	read(t, filepath.Join(dir, "a.svg"), func(b []byte) error { return xml.Unmarshal(b, new(struct{ XMLName xml.Name })) })

	freed := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--fail-on-leak=0", "--", python, script, "3", "30")
	if freed.code != 0 || !strings.Contains(freed.errors, "exact") {
		t.Errorf("a program that frees everything: exit code %d\n%s", freed.code, freed.errors)
	}
	limited := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--max", "dram=1K", "--", python, script, "3", "30")
	if limited.code != 91 || !strings.Contains(limited.errors, "over the limit") {
		t.Errorf("a program above its limit: exit code %d\n%s", limited.code, limited.errors)
	}
	left := slices.DeleteFunc(ledgers(), func(path string) bool { return slices.Contains(before, path) })
	if len(left) > 0 {
		t.Errorf("ledgers are left: %v", left)
	}
}

// TestRunTellsWeightsFromLeaks: weights that were loaded once and the result of the last
// step are no leak, the results of all steps are; with a size every byte counts.
func TestRunTellsWeightsFromLeaks(t *testing.T) {
	t.Parallel()
	python, script := ttnnScript(t, "weights.py")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"weights":           {[]string{"--fail-on-leak", "--", python, script}, 0, "42 MiB   in 21 blocks"},
		"weights, by line":  {[]string{"--stacks", "--fail-on-leak", "--", python, script}, 0, "still allocated when the device was closed"},
		"each byte":         {[]string{"--fail-on-leak=0", "--", python, script}, 90, "failed: 42 MiB in 21 blocks not freed"},
		"weights allowed":   {[]string{"--fail-on-leak=42M", "--", python, script}, 0, ""},
		"a leak":            {[]string{"--fail-on-leak", "--", python, script, "leak"}, 90, "failed: 120 MiB in 60 blocks not freed; there is more in each quarter of the run (--stacks names the line)"},
		"a leak, by line":   {[]string{"--stacks", "--fail-on-leak", "--", python, script, "leak"}, 90, "step grew in each quarter of the run: 40 blocks, +2.0 MiB each, 80 MiB in DRAM of "},
		"a leak, each byte": {[]string{"--stacks", "--fail-on-leak=100M", "--", python, script, "leak"}, 90, "step grew in each quarter of the run: 40 blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), c.args...)
			if got.code != c.code || !strings.Contains(got.errors, c.want) {
				t.Errorf("exit code %d, want %d and %q\n%s", got.code, c.code, c.want, got.errors)
			}
		})
	}
}

func read(t *testing.T, path string, parse func([]byte) error) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = parse(b)
	}
	if err != nil {
		t.Errorf("%s: %v", filepath.Base(path), err)
	}
}

// Several processes, as a launcher of ranks starts them, are told one by one
// and added up.
func TestRunOfSeveralProcesses(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	python, script := ttnnScript(t, "sites.py")
	dir := t.TempDir()
	launch := fmt.Sprintf("for i in 1 2 3; do %s %s $i 20 keep >/dev/null & done; wait", python, script)
	got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--json", "a.json", "--", "sh", "-c", launch)
	var report runreport.Report
	read(t, filepath.Join(dir, "a.json"), func(b []byte) error { return json.Unmarshal(b, &report) })
	if len(report.Run.Processes) != 3 || !strings.Contains(got.errors, "3 processes") {
		t.Fatalf("%d processes\n%s", len(report.Run.Processes), got.errors)
	}
	var left, highest uint64
	for _, p := range report.Run.Processes {
		own := runs.Run{Devices: p.Ledger.Devices}
		pools := chipsOf(&own)[0].Pools
		for _, x := range pools {
			left += x.Blocks.Left.Bytes
		}
		highest = max(highest, pools["dram"].Peak)
	}
	if report.Left().Bytes != left {
		t.Errorf("%d left in all, %d by the processes", report.Left().Bytes, left)
	}
	if x := chipsOf(&report.Run)[0].Pools["dram"]; x.Peak < highest || x.PeakBound == "exact" || report.Run.Pools["dram"].Peak != x.Peak {
		t.Errorf("peak of the sum %v, that of one process %d; of all chips %+v", x.PeakBytes(), highest, report.Run.Pools["dram"])
	}
}

// TestRunAsUnprivilegedUser: a user without any right, in namespaces as a container
// has them, with one file.
func TestRunAsUnprivilegedUser(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	python, script := ttnnScript(t, "sites.py")
	dir := t.TempDir()
	if out, err := exec.Command("cp", filepath.Join(bin, "ttmon"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command("unshare", "--user", "--map-user=1000", "--mount", "--pid", "--fork", "--ipc", "--", "sh", "-c",
		fmt.Sprintf("id -u && ./ttmon run -- %s %s 5 20 keep", python, script))
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), mock(t, "blackhole_P150", dir)...), "PATH="+os.Getenv("PATH"))
	done := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer done.Stop()
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "Operation not permitted") {
		t.Skipf("user namespaces are not to be had: %s", out)
	}
	if err != nil || !strings.Contains(string(out), "exact (libttmon, ttnn 0.81.1)") || !strings.Contains(string(out), "1000\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRunSamples: a program in which libttmon cannot be is sampled from
// outside, and what that does not show is not reported.
func TestRunSamples(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	c, err := cluster.Load(h.Root() + cluster.Dir)
	if err != nil {
		t.Fatal(err)
	}
	chip := c.Chips()[0].ID
	dir := t.TempDir()
	file := filepath.Join(dir, "a.json")
	var report runreport.Report
	// On a busy machine it takes longer until it is sampled.
	for _, after := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second} {
		var cmd *exec.Cmd
		p, err := metal.Start(metal.Options{Command: func(args ...string) *exec.Cmd {
			cmd = h.Command(t.Context(), filepath.Join(bin, "ttmon"),
				append([]string{"run", "--json", file, "--fail-on-leak", "--", filepath.Join(bin, "ttmon-sim"), "metal"}, args...)...)
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir)
			return cmd
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"device /dev/tenstorrent/0", fmt.Sprintf("open %d", chip), fmt.Sprintf("alloc %d dram 64M", chip)} {
			if _, err := p.Do(line); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(after)
		_ = p.End()
		report = runreport.Report{}
		read(t, file, func(b []byte) error { return json.Unmarshal(b, &report) })
		if report.Method == runreport.Sampled {
			if code := cmd.ProcessState.ExitCode(); code != 92 {
				t.Errorf("exit code %d, want 92: leaks cannot be judged", code)
			}
			break
		}
	}
	d := report.Run.Devices
	if report.Method != runreport.Sampled || len(d) != 1 || d[0].ChipID != strconv.FormatUint(chip, 10) || d[0].Index != 0 {
		t.Fatalf("%+v", report)
	}
	if dram := d[0].Pools["dram"]; dram.Peak != 64<<20 || dram.PeakBound == "exact" || dram.Blocks != nil {
		t.Errorf("%+v", dram)
	}
}

// TestRunLive: on a terminal a line shows what is held, and is gone at the end.
func TestRunLive(t *testing.T) {
	hermetic.Long(t)
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("needs script, for a terminal")
	}
	if _, err := libtest.Compiler(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := libtest.Build(dir, "plain"); err != nil {
		t.Fatal(err)
	}
	ttmon, driver := filepath.Join(bin, "ttmon"), filepath.Join(dir, "driver")
	d, err := libtest.Start(exec.Command("script", "-qec", ttmon+" run --live -- "+driver, "/dev/null"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Kill()
	for _, line := range []string{"list 5 0", "alloc 1 4096 1048576"} {
		if err := d.Tell("%s", line); err != nil {
			t.Fatal(err)
		}
	}
	shown := make(chan string)
	go func() {
		defer close(shown)
		var all strings.Builder
		for {
			line, err := d.Answer() // the meter ends no line: the driver's answers do
			all.WriteString(line)
			if err != nil {
				shown <- all.String()
				return
			}
			if strings.Contains(line, "chip 5 DRAM 8.0 MiB") {
				_ = d.Tell("\x04") // the end of its input
			}
		}
	}()
	for deadline := time.After(time.Minute); ; {
		select {
		case text := <-shown:
			if !strings.Contains(text, "chip 5 DRAM 8.0 MiB") || !strings.Contains(text, "exact (libttmon)") {
				t.Errorf("it shows %q", text)
			}
			return
		case <-deadline:
			t.Fatal("it never ends")
		case <-time.After(300 * time.Millisecond):
			_ = d.Tell("error") // something to answer, while it runs
		}
	}
}

// What tt-metal keeps for itself (the kernels of operations, in its program
// cache) is no leak, however often a device is opened and closed, or if it never
// is; what the program left is. Mock mode makes no kernels: a stand-in does.
func TestRunTellsKernelsFromLeaks(t *testing.T) {
	if _, err := libtest.Compiler(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := libtest.Build(dir, "plain"); err != nil {
		t.Fatal(err)
	}
	const operation = "mopen 0 5\nmtake 0 8192\nmkernels 0 24576\nmgive 0 4096\n"
	for name, c := range map[string]struct {
		script string
		code   int
		left   uint64
	}{
		"one operation":                {operation + "mclose 0\n", 0, 0},
		"three devices":                {strings.Repeat(operation+"mclose 0\n", 3), 0, 0},
		"never closed":                 {operation, 0, 0},
		"abandoned":                    {operation + "abandon\n", 0, 0},
		"a tensor next to the kernels": {operation + "mtake 0 16384\nmclose 0\n", 90, 16384},
		"a tensor, never closed":       {operation + "mtake 0 16384\n", 90, 16384},
		"a trace that is not released": {operation + "mtrace 0 512\nmclose 0\n", 90, 512},
	} {
		t.Run(name, func(t *testing.T) {
			script := filepath.Join(dir, "script")
			if err := os.WriteFile(script, []byte("metal 0 "+dir+"/libtt_metal.so\n"+c.script), 0o600); err != nil {
				t.Fatal(err)
			}
			got := ttmonRun(t, dir, nil, "--fail-on-leak=0", "--json", "a.json", "--", "sh", "-c", "./driver <script")
			var report runreport.Report
			read(t, filepath.Join(dir, "a.json"), func(b []byte) error { return json.Unmarshal(b, &report) })
			if got.code != c.code || report.Left().Bytes != c.left || !strings.Contains(got.errors, "exact (libttmon)") {
				t.Errorf("exit code %d, %d bytes left; want %d, %d\n%s", got.code, report.Left().Bytes, c.code, c.left, got.errors)
			}
			if p := chipsOf(&report.Run)[0].Pools["dram"]; p.Peak < 8192+24576 {
				t.Errorf("peak %d: the kernels are not in it", p.Peak)
			}
		})
	}
}

// A trace that is not released before its device is closed is freed when its
// allocator knows it no more: no reason to doubt the figures.
func TestRunWithTraceOnTTNN(t *testing.T) {
	t.Parallel()
	python, _ := ttnnScript(t, "sites.py")
	dir := t.TempDir()
	got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--", python, "-c", `
import ttnn
d = ttnn.open_device(device_id=0, trace_region_size=1 << 20)
t = ttnn.begin_trace_capture(d, cq_id=0)
ttnn.end_trace_capture(d, t, cq_id=0)
ttnn.close_device(d)
`)
	if got.code != 0 || !strings.Contains(got.errors, "exact (libttmon, ttnn 0.81.1)") || !strings.Contains(got.errors, "TRACE") {
		t.Errorf("exit code %d\n%s", got.code, got.errors)
	}
}

// Circular buffers that are larger than L1 altogether are a failure, whether L1 has
// buffers or not, and no clash: freeing buffers does not help.
func TestRunBeyondL1OnTTNN(t *testing.T) {
	t.Parallel()
	python, _ := ttnnScript(t, "sites.py")
	for name, held := range map[string]string{"empty": "", "with a buffer": "held = ttnn.empty([1, 1, 32, 32], ttnn.bfloat16, ttnn.TILE_LAYOUT, d, ttnn.L1_MEMORY_CONFIG)"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--fail-on-no-room", "--json", "a.json", "--", python, "-c", `
import ttnn
d = ttnn.open_device(device_id=0)
`+held+`
a = ttnn.empty([1, 1, 32, 32], ttnn.bfloat16, ttnn.TILE_LAYOUT, d, ttnn.DRAM_MEMORY_CONFIG)
cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))])
page = ttnn.CBFormatDescriptor(buffer_index=0, data_format=ttnn.bfloat16, page_size=2048)
cb = ttnn.CBDescriptor(total_size=2 << 20, core_ranges=cores, format_descriptors=[page])
try:
    ttnn.generic_op([a, a], ttnn.ProgramDescriptor(kernels=[], semaphores=[], cbs=[cb]))
except RuntimeError as e:
    print("beyond max L1 size" in str(e))
`)
			var report runreport.Report
			read(t, filepath.Join(dir, "a.json"), func(b []byte) error { return json.Unmarshal(b, &report) })
			if !strings.HasSuffix(got.out, "True\n") || got.code != 93 || len(report.Failures) != 1 || !strings.Contains(got.errors, "circular buffers are larger than L1") {
				t.Fatalf("it says %q, exit code %d, %d failures\n%s", got.out, got.code, len(report.Failures), got.errors)
			}
			if v := report.Failures[0].Verdict; v.Cause != failure.TooLarge || v.Missing != 2208896-1572864 || len(v.Fixes) > 0 {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestRunHybrid: of an allocator that keeps L1 per core there is no figure of L1,
// and what needs one says that it cannot check it. DRAM is as exact as ever.
func TestRunHybrid(t *testing.T) {
	python, script := ttnnScript(t, "sites.py")
	dir := t.TempDir()
	env := append(mock(t, "blackhole_P150", dir), "TT_METAL_ALLOCATOR_MODE_HYBRID=1")
	got := ttmonRun(t, dir, env, "--json", "a.json", "--fail-on-leak", "--", python, script, "3", "60")
	if got.code != 92 || !strings.Contains(got.errors, "HYBRID") {
		t.Errorf("exit code %d, want 92: it is not known whether L1 was left\n%s", got.code, got.errors)
	}
	var report runreport.Report
	read(t, filepath.Join(dir, "a.json"), func(b []byte) error { return json.Unmarshal(b, &report) })
	if len(report.Run.Processes) != 1 || !report.Run.Processes[0].Ledger.PerCoreL1 || len(chipsOf(&report.Run)) != 1 {
		t.Fatalf("%+v", report)
	}
	pools := chipsOf(&report.Run)[0].Pools
	if dram := pools["dram"]; dram.Peak == 0 || dram.PeakBound != "exact" || pools["l1"].PeakBound != "" {
		t.Errorf("%+v", pools)
	}
}

// TestDiffOfShortCommandsOnTTNN: commands that are over before a snapshot has them are
// compared by what libttmon told, also where they allocate in a grandchild.
func TestDiffOfShortCommandsOnTTNN(t *testing.T) {
	t.Parallel()
	python, _ := ttnnScript(t, "sites.py")
	const program = `
import sys, ttnn
d = ttnn.open_device(device_id=0)
ttnn.deallocate(ttnn.empty([1, 1, 512 * int(sys.argv[1]), 1024], ttnn.bfloat16, ttnn.TILE_LAYOUT, d, ttnn.DRAM_MEMORY_CONFIG))
ttnn.close_device(d)
`
	for name, command := range map[string][]string{
		"the command": {python, "-c", program},
		"grandchild":  {"sh", "-c", `sh -c '"$0" -c "$1" "$2"; true' "$@"; true`, "sh", python, program},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := []string{}
			for _, mib := range []string{"46", "58"} {
				file := filepath.Join(dir, mib+".ttrec")
				if got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), slices.Concat([]string{"--record=" + file, "-q", "--"}, command, []string{mib})...); got.code != 0 {
					t.Fatalf("exit code %d\n%s", got.code, got.errors)
				}
				files = append(files, file)
			}
			diff := func(args ...string) (string, int) {
				cmd := exec.Command(filepath.Join(bin, "ttmon"), append(append([]string{"diff"}, args...), files...)...)
				out, _ := cmd.CombinedOutput()
				return string(out), cmd.ProcessState.ExitCode()
			}
			for limit, code := range map[string]int{"dram.peak>+5%": 1, "dram.peak>+30%": 0, "dram.peak>58MiB": 0, "dram.peak>57MiB": 1, "left>0": 3} {
				out, got := diff("--fail-if", limit)
				if got != code || code < 3 && !strings.Contains(out, "≥46 MiB  ≥58 MiB  +12 MiB") {
					t.Errorf("--fail-if %s: exit code %d, want %d\n%s", limit, got, code, out)
				}
				if said := strings.Contains(out, "passed, but not for certain: dram.peak ≥"); said != (code == 0) {
					t.Errorf("--fail-if %s of peaks that are lower bounds: %s", limit, out)
				}
			}
		})
	}
}

// TestRunL1SmallOnTTNN: an operation that needs L1_SMALL runs with the l1_small_size
// that is named after the first of its requests has failed.
func TestRunL1SmallOnTTNN(t *testing.T) {
	t.Parallel()
	for _, release := range []string{ttnn.Newest, ttnn.Middle} {
		t.Run(release, func(t *testing.T) {
			python, dir := ttnn.Interpreter(t, release), t.TempDir()
			pool := func(size uint64) (ranWith, runreport.Report) {
				got := ttmonRun(t, dir, mock(t, "blackhole_P150", dir), "--json", "a.json", "--", python, "-c", `
import sys, ttnn
d = ttnn.open_device(device_id=0, l1_small_size=int(sys.argv[1]))
a = ttnn.empty([1, 1, 1024, 64], ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT, d, ttnn.DRAM_MEMORY_CONFIG)
ttnn.max_pool2d(a, batch_size=1, input_h=32, input_w=32, channels=64, kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1])
`, fmt.Sprint(size))
				var report runreport.Report
				read(t, filepath.Join(dir, "a.json"), func(b []byte) error { return json.Unmarshal(b, &report) })
				return got, report
			}
			got, report := pool(0)
			if got.code != 1 || len(report.Failures) != 1 || report.Failures[0].Verdict.Cause != failure.RegionTooSmall {
				t.Fatalf("exit code %d, %d failures\n%s", got.code, len(report.Failures), got.errors)
			}
			f := report.Failures[0].Verdict.Fixes[0]
			if f.Kind != failure.L1SmallSize || !strings.Contains(got.errors, fmt.Sprintf("with l1_small_size=%d", f.Bytes)) {
				t.Fatalf("%+v\n%s", f, got.errors)
			}
			if got, report = pool(f.Bytes); got.code != 0 || len(report.Failures) > 0 {
				t.Errorf("with l1_small_size=%d: exit code %d\n%s", f.Bytes, got.code, got.errors)
			}
		})
	}
}

// TestPeakOfShortRun: a program under ttmon run holds memory between two snapshots
// only; ttmon runs has its peak exactly, as the account of ttmon run does.
func TestPeakOfShortRun(t *testing.T) {
	t.Parallel()
	python, _ := ttnnScript(t, "sites.py")
	const program = `
import ttnn
d = ttnn.open_device(device_id=0)
ttnn.deallocate(ttnn.empty([1, 1, 512 * 46, 1024], ttnn.bfloat16, ttnn.TILE_LAYOUT, d, ttnn.DRAM_MEMORY_CONFIG))
ttnn.close_device(d)
`
	h := start(t, sim.Options{Boards: "p150a"})
	d := startDaemon(t, h)
	d.restartableServer()
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	cmd := h.Command(context.Background(), filepath.Join(bin, "ttmon"), "run", "--daemon", d.api, "--json", file, "--", python, "-c", program)
	cmd.Env = append(os.Environ(), "TT_METAL_MOCK_CLUSTER_DESC_PATH="+sim.MockDescriptor, "TT_METAL_LOGS_PATH="+dir, "TT_METAL_CACHE="+filepath.Join(dir, "kernels"),
		"HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "TT_LOGGER_LEVEL=error")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report runreport.Report
	read(t, file, func(b []byte) error { return json.Unmarshal(b, &report) })
	want := report.Run.Pools["dram"]
	if want.Peak < 46<<20 || want.PeakBound != "exact" || len(report.Run.Devices) != 1 || report.Run.Devices[0].Index != 0 {
		t.Fatalf("the report has %+v", report.Run)
	}
	r := d.awaitRun("python", "its peak is exact", func(r *runs.Run) bool { return r.End.Kind != runs.Running && r.Pools["dram"].PeakBound == "exact" })
	if got := r.Pools["dram"].Peak; got != want.Peak || len(r.Devices) != 1 || r.Devices[0].Index != 0 || r.Devices[0].Pools["dram"].Peak != want.Peak {
		t.Errorf("ttmon run says %d, ttmon runs %+v", want.Peak, r)
	}
	for limit := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		left := runProgram(t, h, "ls", "/dev/shm") // the host's own: other tests do not share it
		if left.code != 0 {
			t.Fatalf("exit code %d: %s", left.code, left.err)
		}
		if !strings.Contains(left.out, "ttmon-ledger-") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("ledgers are left: %s", left.out)
		}
	}
}
