package metaltrace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

const deviceLog = `ARCH: blackhole, CHIP_FREQ[MHz]: 1350, Max Compute Cores: 110
PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data
0,1,2,BRISC,12345,1350000,0,7,,,BRISC-FW,ZONE_START,403,brisc.cc,
0,1,2,BRISC,12346,1350135,0,7,,,BRISC-KERNEL,ZONE_START,80,brisck.cc,
0,1,2,BRISC,12347,1351350,0,7,,,BRISC-KERNEL,ZONE_END,80,brisck.cc,
0,1,2,BRISC,12348,1352700,0,7,,,BRISC-FW,ZONE_END,403,brisc.cc,
0,1,2,BRISC,9090,1352701,17,7,,,,TS_DATA,0,,{'x': 1}
1,1,2,TRISC_1,12345,2700000,0,7,,,TRISC-FW,ZONE_START,1,trisc.cc,
`

const opReport = `OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID,ATTRIBUTES,MATH FIDELITY,CORE COUNT,HOST START TS,HOST END TS,HOST DURATION [ns],DEVICE FW START CYCLE,DEVICE FW END CYCLE,DEVICE FW DURATION [ns],DEVICE KERNEL DURATION [ns]
start,signpost,,,,,,1000,,,,,,
Matmul,tt_dnn_device,1024,0,"{'a': 1; 'b, c': ""x""}",HiFi4,64,2000,9000,7000,5,6,4200,4000
Replayed,tt_dnn_device,1025,0,,HiFi4,64,,,,7,8,4200,4000
`

const tracyZones = `name,src_file,src_line,zone_name,zone_text,ns_since_start,exec_time_ns,thread
TT_DNN_DEVICE_OP,op.cpp,10,TT,id:1024,500,250,139
`

func parse(t *testing.T, text string) *Trace {
	t.Helper()
	trace, err := Parse(strings.NewReader(text), "file.csv")
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestDeviceLog(t *testing.T) {
	got := parse(t, deviceLog)
	want := []Slice{
		{"chip 0", "device profiler, chip 0", "core 1,2 BRISC", "BRISC-KERNEL", 1000100, 1001000, []string{"run host ID", "7", "source", "brisck.cc:80"}},
		{"chip 0", "device profiler, chip 0", "core 1,2 BRISC", "BRISC-FW", 1000000, 1002000, []string{"run host ID", "7", "source", "brisc.cc:403"}},
	}
	if diff := cmp.Diff(want, got.Slices); diff != "" || got.Kind != DeviceLog {
		t.Errorf("%s: %s", got.Kind, diff)
	}
	if got.Dropped != 1 {
		t.Errorf("%d dropped; the zone of chip 1 has no end", got.Dropped)
	}
}

func TestOpReport(t *testing.T) {
	got := parse(t, opReport)
	if got.Kind != OpReport || len(got.Slices) != 2 || got.Dropped != 1 {
		t.Fatalf("%+v", got)
	}
	if s := got.Slices[1]; s.Name != "Matmul" || s.From != 2000 || s.To != 9000 || s.Track != "ops, host" || got.Slices[0].Track != "signposts" {
		t.Errorf("%+v", got.Slices)
	}
}

func TestTracy(t *testing.T) {
	got := parse(t, tracyZones)
	want := []Slice{{"host", "Tracy", "thread 139", "TT_DNN_DEVICE_OP", 500, 750, []string{"text", "id:1024", "source", "op.cpp:10"}}}
	if diff := cmp.Diff(want, got.Slices); diff != "" {
		t.Error(diff)
	}
}

// What is damaged, or of another version, is refused, with the line.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int // 0: it is foreign as a whole
	}{
		"empty":                {"", 0},
		"another file":         {"time,value\n1,2\n", 0},
		"no frequency":         {strings.Replace(deviceLog, "CHIP_FREQ[MHz]: 1350, ", "", 1), 1},
		"a frequency of 0":     {strings.Replace(deviceLog, "1350,", "0,", 1), 1},
		"an older device log":  {strings.Replace(deviceLog, "run host ID, ", "", 1), 2},
		"a time that is none":  {strings.Replace(deviceLog, "1351350", "13x", 1), 5},
		"a line that is short": {deviceLog + "0,1,2\n", 9},
		"ops without a device": {strings.Replace(opReport, "DEVICE ID", "CHIP", 1), 1},
		"an end before":        {strings.Replace(opReport, "9000", "900", 1), 3},
		"half a quotation":     {opReport + "Matmul,\"x\n", 5},
		"zones without length": {strings.Replace(tracyZones, "exec_time_ns", "time", 1), 1},
		"a negative zone":      {strings.Replace(tracyZones, ",250,", ",-250,", 1), 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(c.text), "file.csv")
			bad, is := errors.AsType[*LineError](err)
			switch {
			case err == nil:
				t.Error("it was taken")
			case c.line == 0 && !errors.Is(err, ErrForeign):
				t.Error(err)
			case c.line != 0 && (!is || bad.Line != c.line):
				t.Errorf("%v, want line %d", err, c.line)
			}
		})
	}
}

// database makes an SQLite file.
func database(t *testing.T, script string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; make test installs it")
	}
	path := filepath.Join(t.TempDir(), "db.sqlite")
	out, err := exec.Command(python, "-c", "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.commit()", path, script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func TestGraphReport(t *testing.T) {
	path := database(t, `CREATE TABLE operations (operation_id int UNIQUE, name text, duration float);
		CREATE TABLE buffers (operation_id int, device_id int, address int, max_size_per_bank int, buffer_type int, buffer_layout int);
		INSERT INTO operations VALUES (1, 'ttnn.add', 0.5), (2, 'ttnn.matmul', 0.25), (3, 'ttnn.never', NULL);
		INSERT INTO buffers VALUES (2, 0, 4096, 1000, 0, 0), (2, 0, 8192, 500, 1, 0);`)
	got, err := Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Slice{
		{"ops", "graph report", "ops, one behind the other", "ttnn.add", 0, 5e8, []string{"operation", "1"}},
		{"ops", "graph report", "ops, one behind the other", "ttnn.matmul", 5e8, 75e7, []string{"operation", "2", "buffers", "2", "bytes of each bank", "1500"}},
	}
	if diff := cmp.Diff(want, got.Slices); diff != "" || got.Dropped != 1 || got.Written.IsZero() {
		t.Errorf("%+v: %s", got, diff)
	}
	if _, err := Read(t.Context(), database(t, "CREATE TABLE operations (id int)")); err == nil || !strings.Contains(err.Error(), "another version of ttnn") {
		t.Errorf("another version: %v", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 16; i < len(b); i++ {
		b[i] = 0xff
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), path); err == nil {
		t.Error("a damaged database was taken")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{deviceLog, opReport, tracyZones} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		trace, err := Parse(strings.NewReader(s), "x")
		if err != nil {
			return
		}
		for _, x := range trace.Slices {
			if x.To < x.From || len(x.Args)%2 != 0 {
				t.Errorf("%+v", x)
			}
		}
	})
}
