package text_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

type host struct {
	name string
	snap func() *model.Snapshot
}

var hosts = []host{
	{"0", sample.None}, {"1", sample.One}, {"4", sample.Four}, {"32", sample.Galaxy}, {"troubles", sample.Troubles},
}

func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name), got)
}

var utc = text.Options{Version: "0.1.0", Zone: time.UTC}

func TestTable(t *testing.T) {
	for _, h := range hosts {
		for _, width := range []int{80, 100, 120, 200} {
			t.Run(fmt.Sprintf("%s@%d", h.name, width), func(t *testing.T) {
				o := utc
				o.Width = width
				got := text.AppendTable(nil, h.snap(), o)
				compare(t, fmt.Sprintf("table-%s-%d.txt", h.name, width), got)
				for line := range strings.Lines(string(got)) {
					line = strings.TrimSuffix(line, "\n")
					if w := words.Width(line); w > width {
						t.Errorf("%d cells wide: %s", w, line)
					}
					if strings.HasSuffix(line, " ") {
						t.Errorf("blanks at the end of %q", line)
					}
				}
			})
		}
	}
}

// What a narrow terminal must keep, whatever has to go.
func TestNarrowKeepsStateAndMemory(t *testing.T) {
	for _, width := range []int{40, 60, 80} {
		o := utc
		o.Width = width
		out := string(text.AppendTable(nil, sample.Troubles(), o))
		must := []string{"State", "DRAM", "hung", "lost", "reset", "denied"}
		if width > 40 {
			must = append(must, "L1")
		}
		for _, word := range must {
			if !strings.Contains(out, word) {
				t.Errorf("at %d columns %q is gone:\n%s", width, word, out)
			}
		}
	}
}

// No line is longer than the terminal, however narrow it is and whatever is shown:
// a line that the terminal breaks would push a screen drawn in place upwards.
func TestNothingIsTooWide(t *testing.T) {
	many := sample.Galaxy()
	for i := range 40 {
		p := sample.Serve(1000+i, sample.Use(&many.Devices[i%32], 1<<30, 1<<20))
		p.User = model.Value("使用者の名前が長い")
		p.Cmdline = model.Value(strings.Repeat("推論サーバー🚀 e\u0301 ", i))
		p.Container.Runtime, p.Container.ID = "docker", strings.Repeat("f", 64)
		many.Processes = append(many.Processes, p)
	}
	for name, s := range map[string]*model.Snapshot{"four": sample.Four(), "troubles": sample.Troubles(), "many": many, "none": sample.None()} {
		for width := 1; width < 230; width += 1 + width/40 {
			for _, ascii := range []bool{false, true} {
				o := utc
				o.Width, o.ASCII, o.Color = width, ascii, false
				for line := range strings.Lines(string(text.AppendTable(nil, s, o))) {
					if w := words.Width(strings.TrimSuffix(line, "\n")); w > width {
						t.Fatalf("%s at %d columns: %d cells wide: %s", name, width, w, line)
					}
				}
			}
		}
	}
}

// Columns stay where they are while values change.
func TestColumnsDoNotJump(t *testing.T) {
	heads := func(change func(*model.Device)) string {
		s := sample.Four()
		for i := range s.Devices {
			change(&s.Devices[i])
		}
		o := utc
		o.Width = 100
		return strings.Split(string(text.AppendTable(nil, s, o)), "\n")[2]
	}
	want := heads(func(*model.Device) {})
	for name, change := range map[string]func(*model.Device){
		"cold":   func(d *model.Device) { d.Temperature = model.Value(-5.0) },
		"hot":    func(d *model.Device) { d.Temperature = model.Value(104.0) },
		"strong": func(d *model.Device) { d.Power = model.Value(149.0) },
		"slow":   func(d *model.Device) { d.AICLK = model.Value(0.0) },
		"hung":   sample.Hang,
		"resets": sample.Reset,
		"full": func(d *model.Device) {
			d.Memory.Pools[model.DRAM].Used = model.BoundBytes(d.Memory.Pools[model.DRAM].Total.V, model.Unsure)
		},
		"little":  func(d *model.Device) { d.Memory.Pools[model.DRAM].Used = model.BoundBytes(1, model.AtLeast) },
		"l1":      func(d *model.Device) { d.Memory.Pools[model.L1].Used = model.BoundBytes(1023<<20, model.Unsure) },
		"denied":  func(d *model.Device) { d.Memory.Pools[model.L1].Used = model.NoBytes(model.Denied) },
		"degrade": func(d *model.Device) { d.PCIe.Width, d.PCIe.Degraded = model.Value(8), model.Value(true) },
	} {
		t.Run(name, func(t *testing.T) {
			if got := heads(change); got != want {
				t.Errorf("%s moves the columns:\n%s\n%s", name, want, got)
			}
		})
	}
}

func TestColour(t *testing.T) {
	o := utc
	o.Width, o.Color = 100, true
	out := text.AppendTable(nil, sample.Troubles(), o)
	compare(t, "table-colour.txt", out)
	plain := o
	plain.Color = false
	if got := stripSGR(string(out)); got != string(text.AppendTable(nil, sample.Troubles(), plain)) {
		t.Error("without its colours the table is not the plain table")
	}
}

func stripSGR(s string) string {
	var b strings.Builder
	for s != "" {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		s = s[strings.IndexByte(s, 'm')+1:]
	}
	return b.String()
}

func TestASCII(t *testing.T) {
	o := utc
	o.Width, o.ASCII = 100, true
	out := text.AppendTable(nil, sample.Troubles(), o)
	compare(t, "table-ascii.txt", out)
	for _, c := range out {
		if c >= 0x80 {
			t.Fatalf("byte %#x in what should be ASCII", c)
		}
	}
	o.ASCII = false
	utf := strings.Split(string(text.AppendTable(nil, sample.Troubles(), o)), "\n")
	for i, line := range strings.Split(string(out), "\n") {
		if words.Width(line) != words.Width(utf[i]) {
			t.Errorf("line %d changes its width: %q, %q", i, line, utf[i])
		}
	}
}

const evil = "\x1b]0;x\a\u202e\xff\r\n"

// hostileDoubts are doubts of every kind, and of one that is not known, with foreign
// text in every place that can have some.
func hostileDoubts() []model.Doubt {
	var list []model.Doubt
	for _, k := range append(slices.Clone(model.DoubtKinds), model.DoubtRow{Kind: evil}) {
		list = append(list, model.Doubt{Kind: k.Kind, Region: evil, Release: evil, Name: evil, Source: evil, Basis: evil, Detail: evil})
	}
	return list
}

// Nothing foreign reaches the terminal raw, in whatever form.
func TestHostileNames(t *testing.T) {
	s := sample.Troubles()
	for i := range s.Processes {
		p := &s.Processes[i]
		p.Name, p.Cmdline, p.User = model.Value(evil), model.Value(evil), model.Value(evil)
		p.Container = model.Container{Runtime: evil, ID: evil, Pod: evil, Namespace: evil}
		p.Doubts, p.SystemdUnit, p.SlurmJob, p.Release = hostileDoubts(), evil, evil, model.Value(evil)
		for j := range p.Devices {
			p.Devices[j].Doubts, p.Devices[j].Source = hostileDoubts(), evil
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		d.Board, d.Serial, d.ASICID, d.Firmware.Bundle = model.Value(evil), model.Value(evil), model.Value(evil), model.Value(evil)
		d.StateReason, d.Memory.Doubts, d.Doubts, d.Activity.Basis = model.StateReason{Cause: model.ReadBlocked, File: evil}, hostileDoubts(), hostileDoubts(), evil
		for j := range d.Chips {
			d.Chips[j].Name, d.Chips[j].Region = evil, evil
		}
	}
	s.Host.Name, s.Host.Kernel, s.Host.DriverVersion, s.Host.Unbound = evil, evil, model.Value(evil), []string{evil}
	s.StaleSlots[0].Name, s.StaleSlots[0].Region = evil, evil

	o := utc
	o.Width = 200
	var devices []metric.Column[*model.Device]
	for _, n := range metric.Names(metric.Devices()) {
		c, _ := metric.Find(metric.Devices(), n)
		devices = append(devices, c)
	}
	var apps []metric.Column[metric.Use]
	for _, n := range metric.Names(metric.Apps()) {
		c, _ := metric.Find(metric.Apps(), n)
		apps = append(apps, c)
	}
	dmon, _, _ := text.NewDmon("pcumthvfCMe", o)
	pmon, _, _ := text.NewPmon("umMctjn", o)
	for name, out := range map[string][]byte{
		"table": text.AppendTable(nil, s, o), "list": text.AppendList(nil, s, o), "report": text.AppendReport(nil, s, nil, o),
		"query": text.CSV{}.AppendQuery(nil, s, devices), "apps": text.CSV{}.AppendQueryApps(nil, s, apps),
		"dmon": dmon.AppendDmon(nil, s), "pmon": pmon.AppendPmon(nil, s),
		"tt-smi": text.AppendTTSMI(nil, s, text.HostInfo{}, o), "tt-list": text.AppendTTList(nil, s, o),
	} {
		t.Run(name, func(t *testing.T) {
			for _, bad := range []string{"\x1b", "\a", "\u202e", "\xff", "\r"} {
				if bytes.Contains(out, []byte(bad)) {
					t.Errorf("%s lets %q through", name, bad)
				}
			}
		})
	}
}

func TestReport(t *testing.T) {
	compare(t, "report-4.txt", text.AppendReport(nil, sample.Four(), nil, utc))
	compare(t, "report-troubles.txt", text.AppendReport(nil, sample.Troubles(), nil, utc))
	compare(t, "report-memory-pids.txt", text.AppendReport(nil, sample.Four(), []text.Section{text.Memory, text.PIDs}, utc))
}

func TestParseSection(t *testing.T) {
	for in, want := range map[string]text.Section{"memory": text.Memory, " PCIE": text.PCIe, "utilization": text.Activity, "performance": text.Clock, "Voltage": text.Power} {
		t.Run(in, func(t *testing.T) {
			if got, ok := text.ParseSection(in); !ok || got != want {
				t.Errorf("ParseSection(%q) = %q, %v", in, got, ok)
			}
		})
	}
	if _, ok := text.ParseSection("ECC"); ok {
		t.Error("ECC is accepted")
	}
	for _, s := range text.Sections() {
		if !strings.Contains(string(text.AppendReport(nil, sample.One(), []text.Section{s}, utc)), "\n    ") {
			t.Errorf("section %s is empty", s)
		}
	}
}

func TestList(t *testing.T) {
	compare(t, "list-32.txt", text.AppendList(nil, sample.Galaxy(), utc))
	compare(t, "list-troubles.txt", text.AppendList(nil, sample.Troubles(), utc))
}

func TestQuery(t *testing.T) {
	var columns []metric.Column[*model.Device]
	for _, n := range strings.Split("index,name,temperature.gpu,power.draw,memory.used,memory.total,utilization.gpu,pcie.rx,state,activity.basis", ",") {
		c, ok := metric.Find(metric.Devices(), n)
		if !ok {
			t.Fatal(n)
		}
		columns = append(columns, c)
	}
	s := sample.Troubles()
	s.Devices[3].Activity.Basis = `a "quoted", basis`
	out := text.AppendHeader(nil, columns)
	out = text.CSV{}.AppendQuery(out, s, columns)
	out = append(out, '\n')
	out = text.CSV{NoUnits: true}.AppendQuery(out, s, columns)
	compare(t, "query.csv", out)
}

func TestQueryApps(t *testing.T) {
	var columns []metric.Column[metric.Use]
	for _, n := range strings.Split("device_index,device_bus_id,pid,process_name,cmdline,used_memory,used_l1,cpu,rss,runtime,state,memory.note", ",") {
		c, ok := metric.Find(metric.Apps(), n)
		if !ok {
			t.Fatal(n)
		}
		columns = append(columns, c)
	}
	out := text.AppendHeader(nil, columns)
	compare(t, "apps.csv", text.CSV{}.AppendQueryApps(out, sample.Troubles(), columns))
}

func TestStreams(t *testing.T) {
	var out []byte
	for _, h := range hosts {
		out = append(out, "-- "+h.name+" --\n"...)
		st, _, _ := text.NewDmon(text.DmonDefault, utc)
		out = st.AppendDmon(out, h.snap())
		st, _, _ = text.NewPmon(text.PmonDefault, utc)
		out = st.AppendPmon(out, h.snap())
	}
	out = append(out, "-- everything --\n"...)
	st, _, _ := text.NewDmon("pcumthvfCMe", utc)
	st.Date, st.Clock = true, true
	out = st.AppendDmon(out, sample.Troubles())
	st, _, _ = text.NewPmon("umMctjn", utc)
	st.CSV = true
	out = st.AppendPmon(out, sample.Troubles())
	compare(t, "streams.txt", out)
	if _, wrong, ok := text.NewDmon("px", utc); ok || wrong != 'x' {
		t.Errorf("dmon -s px: %c, %v", wrong, ok)
	}
}

// The head comes again after a screen, and never in the middle of a sample.
func TestHeadComesAgain(t *testing.T) {
	st, _, _ := text.NewDmon("p", utc)
	s := sample.Galaxy()
	var out []byte
	for range 3 {
		out = st.AppendDmon(out, s)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3*(2+32) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, l := range lines {
		if got, want := strings.HasPrefix(l, "#"), i%34 < 2; got != want {
			t.Errorf("line %d: %s", i, l)
		}
	}
}

func TestGroupHelpIsComplete(t *testing.T) {
	for _, c := range []struct {
		name, help string
		groups     []text.Group
	}{{"dmon", text.DmonHelp, text.DmonGroups()}, {"pmon", text.PmonHelp, text.PmonGroups()}} {
		t.Run(c.name, func(t *testing.T) {
			lines := strings.Split(c.help, "\n")
			if len(lines) != len(c.groups) {
				t.Fatalf("%d lines of help for %d groups", len(lines), len(c.groups))
			}
			for i, g := range c.groups {
				begin, end := fmt.Sprintf("  %c  ", g.Letter), " ("+strings.Join(g.Columns, ", ")+")"
				if !strings.HasPrefix(lines[i], begin) || !strings.HasSuffix(lines[i], end) {
					t.Errorf("%q is not the help of %q, %q", lines[i], begin, end)
				}
			}
		})
	}
}

// TestTTSMIFirmware: what ttmond reads of the firmware's table is in the snapshot
// of the official shape; only a self-test that passed is not in the table.
func TestTTSMIFirmware(t *testing.T) {
	s := sample.Four()
	s.Devices = s.Devices[:1]
	d := &s.Devices[0]
	d.Arch, d.Chips = model.Blackhole, nil
	d.Telemetry = model.Telemetry{
		State: model.TelemetryOK, BoardPower: model.Value(75.0), MemorySpeed: model.Value(16000.0), MemoryTemperature: model.Value(50.0),
		MemoryFW: model.Value("2.11"), Enabled: model.EnabledParts{Memory: model.Value(uint32(0x7f))},
	}
	for i := range 8 {
		d.Telemetry.Modules = append(d.Telemetry.Modules, model.MemoryModule{
			Index: i, Top: model.Value(46.0), Bottom: model.Value(50.0), Trained: model.Value(i != 7), Failed: model.Value(false),
			CorrectedReads: model.Value(uint32(3)), CorrectedWrites: model.Value(uint32(0)),
			UncorrectedReads: model.Value(true), UncorrectedWrite: model.Value(false),
		})
	}
	var v struct {
		Devices []struct {
			SMBus     map[string]*string `json:"smbus_telem"`
			Board     map[string]any     `json:"board_info"`
			Telemetry map[string]string
			Firmwares map[string]string
			GDDR      map[string]any `json:"gddr_telemetry"`
		} `json:"device_info"`
	}
	if err := json.Unmarshal(text.AppendTTSMI(nil, s, text.HostInfo{}, utc), &v); err != nil {
		t.Fatal(err)
	}
	got := v.Devices[0]
	channel := got.GDDR["channels"].([]any)[0]
	delete(got.GDDR, "channels")
	for what, c := range map[string][2]any{
		"board":       {[]any{got.Board["dram_status"], got.Board["dram_speed"]}, []any{true, "16G"}},
		"board power": {got.Telemetry["board_power"], " 75.0"},
		"firmware":    {got.Firmwares["gddr_fw"], "2.11"},
		"word":        {*got.SMBus["INPUT_POWER"], "0x4b"},
		"memory":      {got.GDDR, map[string]any{"speed": "16G", "max_temp": "50", "enabled_mask": "0x7f"}},
		"channel": {channel, map[string]any{
			"channel": 0.0, "harvested": false, "enabled": true, "training": "pass", "bist": "N/A", "temp_top": "46", "temp_bottom": "50",
			"corr_rd": "3", "corr_wr": "0", "uncorr_rd": "1", "uncorr_wr": "0",
		}},
	} {
		t.Run(what, func(t *testing.T) {
			if !reflect.DeepEqual(c[1], c[0]) {
				t.Errorf("%v, want %v", c[0], c[1])
			}
		})
	}
}

func TestTTSMI(t *testing.T) {
	h := text.HostInfo{Distro: "Ubuntu 24.04 LTS", Machine: "x86_64", Memory: "503.50 GB"}
	compare(t, "ttsmi-4.json", text.AppendTTSMI(nil, sample.Four(), h, utc))
	compare(t, "ttsmi-list.txt", text.AppendTTList(nil, sample.Four(), utc))

	var v struct {
		Devices []struct {
			SMBus     map[string]*string `json:"smbus_telem"`
			Telemetry map[string]string
			GDDR      struct{ Channels []map[string]any } `json:"gddr_telemetry"`
		} `json:"device_info"`
		Processes []map[string]any
	}
	if err := json.Unmarshal(text.AppendTTSMI(nil, sample.Troubles(), h, utc), &v); err != nil {
		t.Fatal(err)
	}
	if n := len(v.Devices); n != 7 { // six endpoints and the n300's remote chip
		t.Fatalf("%d devices", n)
	}
	for i, d := range v.Devices {
		names, channels := 62, 8
		if i == 2 || i == 4 || i == 5 || i == 6 { // Wormhole
			names, channels = 52, 6
		}
		if len(d.SMBus) != names || len(d.GDDR.Channels) != channels || len(d.GDDR.Channels[0]) != 11 {
			t.Errorf("device %d: %d words, %d channels of %d keys", i, len(d.SMBus), len(d.GDDR.Channels), len(d.GDDR.Channels[0]))
		}
		if i < 3 && d.Telemetry["power"] != "N/A" {
			t.Errorf("device %d gives no power, and says %q", i, d.Telemetry["power"])
		}
	}
	if got := v.Processes[len(v.Processes)-1]["cmdline"]; got != "sleep infinity" {
		t.Errorf("last process: %v", got)
	}
}

func TestStale(t *testing.T) {
	staleSlots := sample.Troubles().StaleSlots
	staleSlots = append(staleSlots, model.StaleSlot{PID: 1, Name: "py\x1b", Bytes: model.PoolBytes{
		model.DRAM: model.NoBytes(model.Implausible), model.Trace: model.BoundBytes(64<<20, model.Unsure),
	}})
	list := []model.Leftover{
		{Region: "/dev/shm/tt_device_3727343498630883515_memory", Device: 3, StaleSlots: staleSlots},
		{Region: "/proc/77/root/dev/shm/tt_device_9_memory", Device: model.NoDevice, StaleSlots: staleSlots[:1], Blocked: &model.Doubt{Kind: model.RegionInUse, PIDs: []int{77}}},
		{Region: "/dev/shm/tt_device_10_memory", Device: model.NoDevice, Owner: 1000, Denied: true},
		{Region: "/dev/shm/tt_device_11_memory", Device: 4, Unseen: staleSlots[:1]},
	}
	var out []byte
	for _, width := range []int{80, 100, 120} {
		o := utc
		o.Width = width
		out = fmt.Appendf(out, "-- %d columns\n", width)
		out = text.AppendStale(out, list, sample.Time, o)
	}
	out = append(out, "-- only what is denied\n"...)
	out = text.AppendStale(out, append(list[2:3:3], list[2]), sample.Time, utc)
	compare(t, "stale.txt", out)
}

func BenchmarkTable32(b *testing.B) {
	s, o := sample.Galaxy(), utc
	o.Width = 200
	buf := text.AppendTable(nil, s, o)
	b.ReportAllocs()
	for b.Loop() {
		buf = text.AppendTable(buf[:0], s, o)
	}
}

// TestBarAtHundredColumns: the bar of DRAM stays where L1 has totals, which take
// more room than buffers alone.
func TestBarAtHundredColumns(t *testing.T) {
	for name, known := range map[string]bool{"buffers only": false, "L1 with totals": true} {
		t.Run(name, func(t *testing.T) {
			s := sample.Four()
			for i := range s.Devices {
				if l1 := &s.Devices[i].Memory.Pools[model.L1]; known {
					l1.Occupied, l1.Total = model.ExactBytes(66<<20), model.Value(uint64(183<<20))
				}
			}
			o := utc
			o.Width = 100
			out := string(text.AppendTable(nil, s, o))
			if strings.Contains(out, "66/183 MiB") != known {
				t.Fatalf("not the L1 that was meant:\n%s", out)
			}
			if !strings.Contains(out, "▓░░░░") || !strings.Contains(out, "Bus id") {
				t.Errorf("no bar of DRAM:\n%s", out)
			}
		})
	}
}

// pmon -s u shows what nvidia-smi's does, and a value that is too small for its
// column keeps the columns in line.
func TestPmonBusy(t *testing.T) {
	for _, c := range []struct {
		busy  float64
		bound model.Bound
		want  string
	}{{0.08, model.Exact, " 8"}, {0.000009, model.AtLeast, "≥0"}, {0.000009, model.Unsure, "~0"}, {0.000009, model.Exact, "<1"}, {0, model.Exact, " 0"}} {
		t.Run(c.want, func(t *testing.T) {
			s := &model.Snapshot{Devices: []model.Device{{Index: 0}}, Processes: []model.Process{{
				PID: 7, State: model.Running, User: model.Value("anna"), Devices: []model.DeviceUse{{Device: 0}},
				Work: model.ProcessWork{Chips: []model.ChipWork{{Device: 0, Work: model.Work{Busy: model.Value(c.busy), Bound: c.bound}}}},
			}}}
			st, _, _ := text.NewPmon("um", utc)
			lines := strings.Split(string(st.AppendPmon(nil, s)), "\n")
			if want := "    0        7 anna        " + c.want + "        -      -"; lines[2] != want {
				t.Errorf("\n%q, want\n%q\nbelow\n%q", lines[2], want, lines[0])
			}
		})
	}
}

// A report without memory does not explain the marks of its figures.
func TestReportWithoutMemory(t *testing.T) {
	s := &model.Snapshot{Devices: []model.Device{{Index: 0}}, Processes: []model.Process{{
		PID: 7, State: model.Running, Devices: []model.DeviceUse{{Device: 0, Doubts: []model.Doubt{{Kind: model.OtherThreads}}}},
	}}}
	for _, c := range []struct {
		sections []text.Section
		want     bool
	}{{nil, true}, {[]text.Section{text.Memory}, true}, {[]text.Section{text.Clock, text.PIDs}, true}, {[]text.Section{text.Temperature, text.Clock}, false}} {
		t.Run(fmt.Sprint(c.sections), func(t *testing.T) {
			if out := string(text.AppendReport(nil, s, c.sections, utc)); strings.Contains(out, "\n ~: tt-metal's own statistics") != c.want {
				t.Error(out)
			}
		})
	}
}

// TestCSVFormula: no text is a formula to a spreadsheet, and every number stays one.
func TestCSVFormula(t *testing.T) {
	for cell, want := range map[string]string{
		"=HYPERLINK(1)": "'=HYPERLINK(1)", "+a": "'+a", "-a": "'-a", "@SUM(1,2)": `"'@SUM(1,2)"`,
		"-5": "-5", "-0.5": "-0.5", "+1e3": "+1e3", "-": "-", "": "", "a=b": "a=b",
	} {
		t.Run(cell, func(t *testing.T) {
			if got := text.CSVField(cell); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
