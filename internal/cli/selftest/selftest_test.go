package selftest

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/selftest/report"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func TestParseGrep(t *testing.T) {
	paths := []string{"/sys/a:b/temp1_input", "/sys/a:b/temp1"}
	got := parseGrep("/sys/a:b/temp1_input:61000\n/sys/a:b/temp1:x:y \nnoise\n", paths)
	if len(got) != 2 || got[paths[0]] != "61000" || got[paths[1]] != "x:y" {
		t.Errorf("%q", got)
	}
}

func TestGeneration(t *testing.T) {
	for text, want := range map[string]float64{"2.5 GT/s PCIe": 1, "16.0 GT/s PCIe": 4, "32.0 GT/s PCIe": 5, "Unknown": 0, "": 0} {
		t.Run(text, func(t *testing.T) {
			if n, ok := generation(text); n != want || ok != (want > 0) {
				t.Errorf("%q: %v, %v", text, n, ok)
			}
		})
	}
}

func TestBetween(t *testing.T) {
	for name, tt := range map[string]struct {
		n, a, b, near float64
		want          bool
	}{
		"equal":   {61.25, 61.25, 61.25, 0, true},
		"rising":  {62, 61, 63, 0, true},
		"falling": {62, 63, 61, 0, true},
		"outside": {64, 61, 63, 0, false},
		"near":    {64, 61, 63, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := between(tt.n, tt.a, tt.b, tt.near); got != tt.want {
				t.Error(got)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		figure model.Bytes
		want   report.Verdict
	}{
		"right":        {model.ExactBytes(64 * mib), report.Right},
		"wrong":        {model.ExactBytes(63 * mib), report.Wrong},
		"at least":     {model.BoundBytes(32*mib, model.AtLeast), report.Bounded},
		"at too least": {model.BoundBytes(65*mib, model.AtLeast), report.Wrong},
		"about":        {model.BoundBytes(65*mib, model.Unsure), report.Bounded},
		"a lie":        {model.BoundBytes(1024*mib, model.Unsure), report.Wrong},
		"not known":    {model.NoBytes(model.Denied), report.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got, note := judge(tt.figure, 64*mib); got != tt.want {
				t.Errorf("%s (%s), want %s", got, note, tt.want)
			}
		})
	}
}

// region makes a region with one slot.
func region(pid int, dram uint64) []byte {
	b := make([]byte, regionSize)
	binary.LittleEndian.PutUint32(b[slotsAt+3*slotSize:], uint32(pid))
	binary.LittleEndian.PutUint64(b[slotsAt+3*slotSize+slotDRAM:], dram)
	return b
}

func TestRegionThatLies(t *testing.T) {
	list := decodeSlots(region(42, 5<<30), 7)
	if len(list) != 1 || list[0].pid != 42 || list[0].chip != 7 || list[0].bytes[model.DRAM] != 5<<30 {
		t.Fatalf("%+v", list)
	}
	for name, tt := range map[string]struct {
		source model.Source
		figure model.Bytes
		want   report.Verdict
	}{
		"the same":                 {model.FromShm, model.ExactBytes(5 << 30), report.Unknown}, // it is no witness of itself
		"marked":                   {model.FromShm, model.BoundBytes(5<<30, model.Unsure), report.Unknown},
		"marked, another number":   {model.FromShm, model.BoundBytes(1<<30, model.Unsure), report.Unknown},
		"a better source agrees":   {model.FromUprobe, model.ExactBytes(5 << 30), report.Right},
		"another number":           {model.FromShm, model.ExactBytes(1 << 30), report.Wrong},
		"a better source has less": {model.FromUprobe, model.ExactBytes(1 << 30), report.Wrong},
		"a better source has more": {model.FromUprobe, model.ExactBytes(6 << 30), report.Bounded},
	} {
		t.Run(name, func(t *testing.T) {
			u := &model.DeviceUse{Source: tt.source}
			var shown model.PoolBytes
			shown[model.DRAM] = tt.figure
			got, ok := compareSlot(list[0], list[0], model.DRAM, u, &shown)
			if !ok || got.Verdict != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
}

func TestTouches(t *testing.T) {
	for path, want := range map[string]bool{
		"/dev/tenstorrent/0": true, "/sys/devices/pci0000:40/0000:41:00.0/resource4": true, "/sys/devices/pci0000:40/0000:41:00.0/config": true,
		"/sys/devices/pci0000:40/0000:41:00.0/tenstorrent/tenstorrent!0/tt_aiclk": false, "/etc/config": false, "socket:[1]": false,
	} {
		t.Run(path, func(t *testing.T) {
			if got := touches(path); got != want {
				t.Error(got)
			}
		})
	}
}

// A ttmond of another release is found, whatever else it answers.
func TestOtherRelease(t *testing.T) {
	hermetic.Long(t)
	socket := filepath.Join(t.TempDir(), "ttmond.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/health") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"status":"ok","version":"0.0.1","pid":1}`))
			return
		}
		http.NotFound(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	r, err := Run(context.Background(), Options{Host: host.Options{Daemon: socket, Getenv: func(string) string { return "" }}, Program: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	if got := find(r, "release of ttmond"); got == nil || got.Verdict != report.Wrong || got.Witness != "0.0.1" {
		t.Errorf("%+v", got)
	}
}

func find(r *report.Report, what string) *report.Row {
	for i := range r.Rows {
		if r.Rows[i].What == what {
			return &r.Rows[i]
		}
	}
	return nil
}

func TestSlowOnly(t *testing.T) {
	for release, want := range map[string]bool{"0.71.2": true, "0.72.0": false, "0.81.1": false, "1.0": false, "": false, "x.y": false} {
		t.Run(release, func(t *testing.T) {
			if got := slowOnly(release); got != want {
				t.Errorf("%q: %v", release, got)
			}
		})
	}
}

// What ttmond knows of a chip that hung before the test is not held against our own
// reading, which began later; anything else is.
func TestHungSince(t *testing.T) {
	for name, tt := range map[string]struct {
		own, theirs           model.State
		ownCause, theirsCause model.Cause
		hung                  bool
		note                  string
	}{
		"not read for long":       {model.StateOK, model.StateHung, model.HeartbeatUnseen, model.HeartbeatStopped, true, ""},
		"it beats for us":         {model.StateOK, model.StateHung, "", model.HeartbeatStopped, false, "device 0 is bus   ok here, and bus   hung for ttmond"},
		"hung for another reason": {model.StateOK, model.StateHung, model.HeartbeatUnseen, model.AllOnes, false, "device 0 is bus   ok here, and bus   hung for ttmond"},
		"hung for both":           {model.StateHung, model.StateHung, model.HeartbeatStopped, model.HeartbeatStopped, false, ""},
		"ok for both":             {model.StateOK, model.StateOK, model.HeartbeatUnseen, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			host := func(s model.State, c model.Cause) *model.Snapshot {
				return &model.Snapshot{Devices: []model.Device{{BusID: "bus", State: s, StateReason: model.StateReason{Cause: c}}}}
			}
			own, theirs := host(tt.own, tt.ownCause), host(tt.theirs, tt.theirsCause)
			x := &test{hung: hungSince(own, theirs)}
			if note := x.difference(own, theirs); x.hung[0] != tt.hung || note != tt.note {
				t.Errorf("hung %v, %q", x.hung, note)
			}
		})
	}
}

func TestHungRow(t *testing.T) {
	for name, tt := range map[string]struct {
		state model.State
		cause model.Cause
		want  report.Verdict
	}{
		"hung":       {model.StateHung, model.HeartbeatStopped, report.Right},
		"beats":      {model.StateOK, "", report.Wrong},
		"no time":    {model.StateOK, model.HeartbeatUnseen, report.Unknown},
		"it is gone": {model.StateLost, model.ReportedGone, report.Wrong},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hungRow(&model.Device{State: tt.state, StateReason: model.StateReason{Cause: tt.cause}}); got.Verdict != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
}

// A chip that hangs while values are compared has stale ones from then on: what was
// found before stays, the rest is unknown.
func TestCompareAChipThatHangs(t *testing.T) {
	x := &test{}
	s := &subject{open: map[string]*report.Row{}}
	file := path(x.root, 0, "", inClass, "tt_card_type")
	clock := path(x.root, 0, "", inClass, "tt_aiclk")
	files := reading{files: map[string]string{file: "n150", clock: "500"}}
	snap := &model.Snapshot{Devices: []model.Device{{State: model.StateOK, Board: model.Value("n300"), AICLK: model.Value(500.0)}}}
	if !x.compareDevice(s, snap, files, files) || s.open["board.type"].Verdict != report.Wrong || s.open["clocks.ai"].Verdict != report.Right {
		t.Fatalf("a chip that works: %+v, %+v", s.open["board.type"], s.open["clocks.ai"])
	}
	delete(s.open, "clocks.ai")
	hung := &model.Snapshot{Devices: []model.Device{{State: model.StateHung, Board: model.Value("n300"), AICLK: model.Missing[float64](model.Stale, "")}}}
	if x.compareDevice(s, hung, files, files) {
		t.Error("it waits for a chip that is hung")
	}
	if s.open["board.type"].Verdict != report.Wrong || s.open["clocks.ai"].Verdict != report.Unknown {
		t.Errorf("a chip that hung: %+v, %+v", s.open["board.type"], s.open["clocks.ai"])
	}
}

func TestBeatRow(t *testing.T) {
	for name, tt := range map[string]struct {
		state              model.State
		first, after, last string
		want               report.Verdict
		witness            string
		cause              model.Cause
	}{
		"alive":                        {model.StateOK, "10", "50", "65", report.Right, "beats", ""},
		"alive, and ttmon says hung":   {model.StateHung, "10", "50", "65", report.Wrong, "beats", ""},
		"still all the time":           {model.StateHung, "10", "10", "10", report.Right, "stands still", ""},
		"still, and ttmon says ok":     {model.StateOK, "10", "10", "10", report.Wrong, "stands still", ""},
		"still, for too short a time":  {model.StateOK, "10", "10", "10", report.Unknown, "stands still", model.HeartbeatUnseen},
		"stopped during the test":      {model.StateHung, "10", "50", "50", report.Wrong, "stopped", ""},
		"not to be read after it":      {model.StateHung, "10", "50", "", report.Wrong, "stopped", ""},
		"not to be read, then it beat": {model.StateOK, "10", "", "65", report.Right, "beats", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := beatRow(&model.Device{State: tt.state, StateReason: model.StateReason{Cause: tt.cause}}, tt.first, tt.after, tt.last)
			if got.Verdict != tt.want || got.Witness != tt.witness {
				t.Errorf("%+v, want %s, %s", got, tt.want, tt.witness)
			}
		})
	}
}

func TestPowerRow(t *testing.T) {
	asleep, awake := map[string]string{"power_state": "D3hot"}, map[string]string{"power_state": "D0"}
	closed, open := map[int][]string{0: nil}, map[int][]string{0: {"42"}}
	for name, tt := range map[string]struct {
		before, after traces
		want          report.Verdict
	}{
		"unchanged":                 {traces{power: asleep, openers: closed}, traces{power: asleep, openers: closed}, report.Right},
		"woken by no other process": {traces{power: asleep, openers: closed}, traces{power: awake, openers: closed}, report.Wrong},
		"woken by a program":        {traces{power: asleep, openers: closed}, traces{power: awake, openers: open}, report.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := powerRow(tt.before, tt.after); got.Verdict != tt.want {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
}

func TestOpenedByUs(t *testing.T) {
	other, ours := traces{openers: map[int][]string{0: {"42"}}}, traces{openers: map[int][]string{0: {"42", "7"}}}
	if got := openedByUs(other, other, []string{"7"}); got.Verdict != report.Right {
		t.Errorf("%+v", got)
	}
	if got := openedByUs(other, ours, []string{"7"}); got.Verdict != report.Wrong || got.Witness != "device 0 by 7" {
		t.Errorf("%+v", got)
	}
}

// A program that never ends, and whose child keeps its output open, is killed
// with that child.
func TestOutputOfAProgramThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pids")
	go func() {
		for {
			if b, err := os.ReadFile(file); err == nil && strings.Count(string(b), "\n") == 2 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	out, err := output(ctx, "sh", "-c", `sleep infinity & printf '%s\n' $! $$ >`+file+`; sleep infinity`)
	if !errors.Is(err, context.Canceled) || len(out) > 0 {
		t.Errorf("%q, %v", out, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil || groupAlive(group) {
		t.Errorf("group %d: %v", group, err)
	}
}

func TestStage(t *testing.T) {
	for name, tt := range map[string]struct {
		simulator, mock string
		want            string
	}{
		"a simulator":       {"/opt/sim/libttsim.so", "", "chip simulator libttsim.so"},
		"mock mode":         {"", "/x.yaml", "mock mode"},
		"both, as tt-metal": {"/opt/sim/", "/x.yaml", "chip simulator sim"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(simulatorVar, tt.simulator)
			t.Setenv(mockVar, tt.mock)
			got, err := new(test).stage(t.Context())
			if err != nil || got.String() != tt.want || len(got.env) > 0 {
				t.Errorf("%q, %v, %v", got, got.env, err)
			}
		})
	}
	if got := onDevices([]model.Device{{Index: 2}, {Index: 5}}); got.String() != "device 2, 5" || !slices.Equal(got.env, []string{"TT_VISIBLE_DEVICES=2,5"}) {
		t.Errorf("%q, %v", got, got.env)
	}
}

// A chip simulator is the stage where there is no board.
func TestStageOfAChipSimulator(t *testing.T) {
	hermetic.Long(t)
	t.Setenv(simulatorVar, "/opt/sim/libttsim.so")
	o := Options{Host: host.Options{Direct: true, Getenv: func(string) string { return "" }}, Program: "/bin/true", Python: "/bin/false"}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stage != report.ChipSimulator || r.ProgramOn != "chip simulator libttsim.so" || r.Count(report.Failed) != 1 {
		t.Errorf("%s, %q: %+v", r.Stage, r.ProgramOn, r.Rows)
	}
}

func TestOursByName(t *testing.T) {
	x := &test{jobs: []int{42}, folder: "ttmon-selftest-123"}
	for base, want := range map[string]bool{
		"ttmon-selftest-123": true, "ttmon-selftest-124": false, "": false, "ttmon-ledger-42-0123456789abcdef": true, "ttmon-ledger-43-0123456789abcdef": false,
		"tt_device_7_memory": false, "ttmon-ledger-": false, "other": false,
	} {
		t.Run(base, func(t *testing.T) {
			if got := x.oursByName(base); got != want {
				t.Error(got)
			}
		})
	}
}

// Files and processes that are left are found.
func TestLeftBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	child := exec.Command("sleep", "infinity")
	child.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	x := &test{}
	before := traces{files: x.readFiles()}
	var clean, dirty report.Report
	x.leftBehind(&clean, before)
	if got := find(&clean, "files left behind"); got.Verdict != report.Right {
		t.Errorf("%+v", got)
	}
	x.folder = folderPrefix + "1"
	for _, name := range []string{x.folder, folderPrefix + "of-another"} {
		if err := os.Mkdir(filepath.Join(os.TempDir(), name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	x.jobs = []int{child.Process.Pid}
	x.leftBehind(&dirty, before)
	if got := find(&dirty, "files left behind"); got.Verdict != report.Wrong || got.Witness != folderPrefix+"1" {
		t.Errorf("%+v", got)
	}
	if got := find(&dirty, "processes left behind"); got.Verdict != report.Wrong {
		t.Errorf("%+v", got)
	}
}
