package firmware_test

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/lab/sim/arc/emulated"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
	"github.com/ttmon/ttmon/internal/source/firmware"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == chipread.Flag {
		os.Exit(readerThatStops())
	}
	hermetic.Main(m)
}

// bench is a source over one emulated chip, with a clock of its own.
type bench struct {
	t      *testing.T
	driver *emulated.Driver
	source *firmware.Source
	snap   model.Snapshot

	mu       sync.Mutex
	now      time.Time
	requests []chipread.Request
	hold     chan struct{} // readers wait for it; nil: they do not
	dies     bool          // readers end without an answer
	pid      int           // of the last reader
	stages   string        // what readers that wait have reported
	words    map[uint16]uint32
}

func newBench(t *testing.T, arch model.Arch, mode firmware.Mode) *bench {
	t.Helper()
	b := &bench{t: t, stages: "hc", now: time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC), words: arc.Sample(arch)}
	b.driver = emulated.New(arch, arc.New(arch, func(tag uint16) (uint32, bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w, ok := b.words[tag]
		return w, ok
	}))
	b.snap.Host.DriverVersion = model.Value("2.10.0")
	b.snap.Devices = []model.Device{{
		Index: 0, BusID: b.driver.BusID, Arch: arch, State: model.StateOK, Heartbeat: model.Value(uint32(100)),
	}}
	b.source = firmware.New(firmware.Options{
		Root: hostfs.At(t.TempDir()), Mode: mode, Superuser: true, Deadline: time.Minute,
		Start: b.start, Now: func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now },
	})
	return b
}

// inProcess is a reader that is none.
type inProcess struct {
	b    *bench
	pid  int
	r    []chipread.Request // those that are left
	hold chan struct{}
	dies bool

	stages string
}

func (b *bench) start(r []chipread.Request) (firmware.Reader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r...)
	// Each has a pid of its own, above what the kernel gives out: the end of one
	// is noted after its answer, when the next one may already run.
	b.pid = max(b.pid, 1<<22) + 1
	return &inProcess{b, b.pid, r, b.hold, b.dies, b.stages}, nil
}

func (p *inProcess) PID() int { return p.pid }
func (p *inProcess) Kill()    {}
func (p *inProcess) Wait() {
	if p.hold != nil {
		<-p.hold
	}
}

func (p *inProcess) Next(time.Time) (string, chipread.Response, error) {
	if p.hold != nil {
		return p.stages, chipread.Response{}, firmware.ErrLate
	}
	if p.dies {
		return "hc", chipread.Response{}, errors.New("signal: bad system call")
	}
	r := &p.r[0]
	p.r = p.r[1:]
	return "hc", chipread.Read(p.b.driver, r), nil
}

// pass lets time go by and shows the source the host once a second.
func (b *bench) pass(d time.Duration) {
	for ; d > 0; d -= time.Second {
		b.mu.Lock()
		b.now = b.now.Add(time.Second)
		b.mu.Unlock()
		if h := &b.snap.Devices[0].Heartbeat; h.Known() {
			h.V += 10
		}
		b.source.Sample(b.snap.Host.DriverVersion.V, collect.Readable(&b.snap))
		b.source.Settle()
	}
}

func (b *bench) device() *model.Device {
	d := b.snap.Devices[0]
	d.Telemetry = model.Telemetry{}
	b.source.Fill(&d)
	return &d
}

func (b *bench) want(state model.TelemetryState, cause model.TelemetryCause) {
	b.t.Helper()
	if t := b.device().Telemetry; t.State != state || t.Cause != cause {
		b.t.Errorf("state %q, cause %q; want %q, %q", t.State, t.Cause, state, cause)
	}
}

func (b *bench) reads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.requests)
}

// holder is a process that has the chip open.
func holder(release string) model.Process {
	p := model.Process{PID: 99, State: model.Running, Devices: []model.DeviceUse{{Device: 0, OpenFDs: model.Value(1)}}}
	if release != "" {
		p.Release = model.Value(release)
	}
	return p
}

func TestSamples(t *testing.T) {
	for _, arch := range []model.Arch{model.Wormhole, model.Blackhole} {
		t.Run(string(arch), func(t *testing.T) {
			b := newBench(t, arch, firmware.Table)
			b.pass(21 * time.Second)
			b.want(model.TelemetryOK, "")
			if n := b.reads(); n < 4 || n > 5 {
				t.Errorf("%d samples in 21 s", n)
			}
			d := b.device()
			if d.Telemetry.BoardPower.V != float64(arc.Sample(arch)[54]) || d.BoardPowerLimit.V != 300 || d.Cores.Nominal || !d.Cores.Known() {
				t.Errorf("board power %v, limit %v, cores %+v", d.Telemetry.BoardPower, d.BoardPowerLimit, d.Cores)
			}
			if last := b.requests[len(b.requests)-1]; last.First || last.Known == nil {
				t.Error("values that do not change are read again and again")
			}
			// Its end is noted after its answer has been taken.
			for limit := time.Now().Add(time.Minute); b.source.Own(b.pid); time.Sleep(time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatal("a reader that has exited still counts as one")
				}
			}
		})
	}
}

func TestOffTouchesNothing(t *testing.T) {
	b := newBench(t, model.Wormhole, firmware.Off)
	b.pass(time.Minute)
	if b.reads() != 0 || b.driver.Chip.Reads() != 0 || b.device().Telemetry.State != model.TelemetryOff {
		t.Errorf("%d readers, %d loads", b.reads(), b.driver.Chip.Reads())
	}
}

// Every reason not to read a chip. None of them starts a reader.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name    string
		arch    model.Arch
		user    bool // not root
		prepare func(b *bench)
		want    model.TelemetryCause // "": it is read
	}{
		{"blackhole", model.Blackhole, false, func(*bench) {}, ""},
		{"an unknown architecture", model.UnknownArch, false, func(*bench) {}, model.ArchUnknown},
		{"an unknown driver", model.Blackhole, false, func(b *bench) { b.snap.Host.DriverVersion = model.Reading[string]{} }, model.DriverUnknown},
		{"a driver without windows", model.Blackhole, false, func(b *bench) { b.snap.Host.DriverVersion.V = "1.31" }, model.DriverTooOld},
		{"1.32", model.Blackhole, false, func(b *bench) { b.snap.Host.DriverVersion.V = "1.32" }, ""},
		{"2.6.0, which sends a message at close", model.Blackhole, false, func(b *bench) { b.snap.Host.DriverVersion.V = "2.6.0" }, model.CloseSendsMessage},
		{"2.6.0 on wormhole", model.Wormhole, false, func(b *bench) { b.snap.Host.DriverVersion.V = "2.6.0" }, ""},
		{"resetting", model.Blackhole, false, func(b *bench) { b.snap.Devices[0].State = model.StateResetting }, model.DeviceNotOK},
		{"hung", model.Wormhole, false, func(b *bench) { b.snap.Devices[0].State = model.StateHung }, model.DeviceNotOK},
		{"a heartbeat that was not seen to move", model.Wormhole, false, func(b *bench) { b.snap.Devices[0].StateReason.Cause = model.HeartbeatUnseen }, model.DeviceNotOK},
		{"holders that cannot be seen", model.Blackhole, false, func(b *bench) { b.snap.Devices[0].HiddenFDs = 1 }, model.HoldersUnknown},
		{"holders that are not known", model.Blackhole, false, func(b *bench) {
			b.snap.Devices[0].Doubts = []model.Doubt{{Kind: model.UsersUnknown}}
		}, model.HoldersUnknown},
		{"a program of before the driver's windows", model.Blackhole, false, func(b *bench) { b.snap.Processes = []model.Process{holder("0.58.0")} }, model.OldWindowUser},
		{"a program of which nothing is known", model.Blackhole, false, func(b *bench) { b.snap.Processes = []model.Process{holder("")} }, model.OldWindowUser},
		{"a program that asks", model.Blackhole, false, func(b *bench) { b.snap.Processes = []model.Process{holder("0.75.0")} }, ""},
		{"an old program, and no window needed", model.Wormhole, false, func(b *bench) { b.snap.Processes = []model.Process{holder("0.58.0")} }, ""},
		{"an old program on wormhole, without root", model.Wormhole, true, func(b *bench) { b.snap.Processes = []model.Process{holder("0.58.0")} }, model.OldWindowUser},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.arch, firmware.Full)
			if tt.user {
				b.source.SetSuperuser(false)
			}
			tt.prepare(b)
			b.pass(3 * time.Second)
			if tt.want == "" {
				b.want(model.TelemetryOK, "")
				return
			}
			b.want(model.TelemetryRefused, tt.want)
			if b.reads() != 0 || b.driver.Chip.Reads() != 0 || b.driver.Opens != 0 {
				t.Errorf("%d readers, %d loads, %d opens", b.reads(), b.driver.Chip.Reads(), b.driver.Opens)
			}
		})
	}
}

// Without root a Wormhole is opened only while another process has it open, or when
// its power-down has long come.
func TestPowerDownIsNotLost(t *testing.T) {
	b := newBench(t, model.Wormhole, firmware.Table)
	b.source.SetSuperuser(false)
	b.snap.Processes = []model.Process{holder("0.75.0")}
	b.pass(2 * time.Second)
	b.want(model.TelemetryOK, "")
	before := b.reads()
	b.snap.Processes = nil
	b.pass(6 * time.Second) // the grace time and a second
	if n := b.reads(); n != before {
		t.Errorf("%d opens within the grace time", n-before)
	}
	b.want(model.TelemetryRefused, model.PowerDownPending)
	b.pass(3 * time.Second)
	if b.reads() == before {
		t.Error("it was never opened again")
	}
	b.snap.Host.DriverVersion.V = "2.8.0" // which has no timer
	b.snap.Processes = []model.Process{holder("0.75.0")}
	b.pass(time.Second)
	b.snap.Processes = nil
	before = b.reads()
	b.pass(6 * time.Second)
	if b.reads() == before {
		t.Error("a driver without the timer was waited for")
	}
}

// A read that does not return costs one chip, starts no second reader, and ends
// with a reset of the chip.
func TestStalled(t *testing.T) {
	b := newBench(t, model.Wormhole, firmware.Table)
	b.pass(time.Second)
	b.want(model.TelemetryOK, "")
	hold := make(chan struct{})
	b.mu.Lock()
	b.hold = hold
	b.mu.Unlock()
	b.pass(10 * time.Second)
	b.want(model.TelemetryStalled, model.ReadStalled)
	if !b.source.Own(b.pid) {
		t.Error("the reader counts as a user of the device")
	}
	n := b.reads()
	b.pass(time.Hour)
	b.want(model.TelemetryStalled, model.ReadStalled)
	if b.reads() != n {
		t.Errorf("%d more readers in an hour", b.reads()-n)
	}
	if p := b.device().Telemetry.BoardPower; p.Known() || p.Status != model.Hung {
		t.Errorf("board power of an hour ago: %+v", p)
	}
	b.mu.Lock()
	b.hold = nil
	b.mu.Unlock()
	b.snap.Devices[0].State = model.StateResetting
	b.pass(time.Second)
	if b.reads() != n {
		t.Error("a second reader was started while the first one runs")
	}
	close(hold) // the reset ends the load
	b.source.Idle()
	b.snap.Devices[0].State, b.snap.Devices[0].Heartbeat.V = model.StateOK, 1
	b.pass(6 * time.Second)
	b.want(model.TelemetryOK, "")
}

// A reader that is late has stalled only if it had begun to read the chip:
// otherwise the driver, or a busy host, holds it up, and the next sample may be
// read.
func TestLateBeforeTheChip(t *testing.T) {
	for _, tt := range []struct {
		name, stages string
		want         model.TelemetryCause
	}{
		{"in the driver's file", "h", model.ResetUnderWay},
		{"before it has done anything", "", model.ReaderFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, model.Wormhole, firmware.Table)
			b.stages, b.hold = tt.stages, make(chan struct{})
			b.source.Sample(b.snap.Host.DriverVersion.V, collect.Readable(&b.snap))
			b.source.Close() // has its answer, not its end
			b.want(model.TelemetryFailed, tt.want)
			close(b.hold)
			b.source.Idle()
		})
	}
}

// Where the kernel does not let root map the PCI file (Secure Boot), a Wormhole is
// read by its node, under the conditions that hold for that.
func TestByNodeWhereThePCIFileIsDenied(t *testing.T) {
	b := newBench(t, model.Wormhole, firmware.Table)
	b.driver.ResourceError = unix.EPERM
	b.pass(5 * time.Second)
	b.want(model.TelemetryRefused, model.PowerDownPending)
	if b.driver.Opens != 0 {
		t.Errorf("%d opens within the grace time", b.driver.Opens)
	}
	b.pass(5 * time.Second)
	b.want(model.TelemetryOK, "")
	if way := b.device().Telemetry.Way; way != model.ByNode || b.driver.Opens == 0 {
		t.Errorf("read by %q, with %d opens", way, b.driver.Opens)
	}
}

// After a reset there is no sample until the next one was read.
func TestPendingAfterAReset(t *testing.T) {
	b := newBench(t, model.Wormhole, firmware.Table)
	b.pass(2 * time.Second)
	b.want(model.TelemetryOK, "")
	b.snap.Devices[0].Heartbeat.V = 1
	b.pass(time.Second)
	b.want(model.TelemetryPending, "")
	if p := b.device().Telemetry.BoardPower; p.Status != model.Pending {
		t.Errorf("board power of before the reset: %+v", p)
	}
	b.pass(5 * time.Second)
	b.want(model.TelemetryOK, "")
}

// A sample of a chip that was reset meanwhile is dropped: its words are of before.
func TestResetWhileRead(t *testing.T) {
	b := newBench(t, model.Blackhole, firmware.Table)
	b.driver.AfterLoads = 20
	b.pass(time.Second)
	b.want(model.TelemetryFailed, model.ResetWhileRead)
	if b.device().Telemetry.BoardPower.Known() {
		t.Error("words of before the reset are shown")
	}
}

func TestBacksOffFromAllOnes(t *testing.T) {
	b := newBench(t, model.Blackhole, firmware.Table)
	b.driver.Chip.SetFaults(arc.Faults{Dead: true})
	b.pass(12 * time.Second)
	n := b.reads()
	b.want(model.TelemetryRefused, model.BackingOff)
	b.pass(50 * time.Second)
	if b.reads() != n || n != 2 {
		t.Errorf("%d samples, then %d more within the minute", n, b.reads()-n)
	}
	b.driver.Chip.SetFaults(arc.Faults{})
	b.pass(20 * time.Second)
	b.want(model.TelemetryOK, "")
}

func TestReaderThatDies(t *testing.T) {
	b := newBench(t, model.Blackhole, firmware.Table)
	b.dies = true
	b.pass(2 * time.Second)
	b.want(model.TelemetryFailed, model.ReaderFailed)
	b.mu.Lock()
	b.dies = false
	b.mu.Unlock()
	b.pass(6 * time.Second)
	b.want(model.TelemetryOK, "")
}

// Values that were not read for long are not shown as current.
func TestStale(t *testing.T) {
	b := newBench(t, model.Blackhole, firmware.Table)
	b.pass(2 * time.Second)
	b.snap.Devices[0].HiddenFDs = 1
	b.pass(10 * time.Second)
	if d := b.device(); !d.Telemetry.BoardPower.Known() || d.Telemetry.State != model.TelemetryRefused {
		t.Errorf("a sample of 10 s ago: %+v", d.Telemetry.BoardPower)
	}
	b.pass(30 * time.Second)
	if d := b.device(); d.Telemetry.BoardPower.Status != model.Stale || d.BoardPowerLimit.Known() {
		t.Errorf("a sample of 40 s ago: %+v, limit %+v", d.Telemetry.BoardPower, d.BoardPowerLimit)
	}
}

func TestRates(t *testing.T) {
	b := newBench(t, model.Blackhole, firmware.Table)
	b.pass(2 * time.Second)
	if r := b.device().Telemetry.CorrectedRate; r.Status != model.Pending {
		t.Errorf("a rate after one sample: %+v", r)
	}
	b.mu.Lock()
	b.words[46] = 5 // five more
	b.mu.Unlock()
	b.pass(5 * time.Second)
	if r := b.device().Telemetry.CorrectedRate; r.V != 5*3600/5 {
		t.Errorf("rate %+v, want %d an hour", r, 5*3600/5)
	}
}

// Dispatch and Ethernet cores are read only while a live program of tt-metal has
// the chip open, and never again once one was silent.
func TestFull(t *testing.T) {
	for _, arch := range []model.Arch{model.Wormhole, model.Blackhole} {
		t.Run(string(arch), func(t *testing.T) {
			b := newBench(t, arch, firmware.Full)
			program := arc.Dispatch{L1: 0x1_0000, X: 18, Y: 20, Workers: 64, Now: 1_000_000, Busy: 1000}
			if arch == model.Blackhole {
				program.X, program.Y = 3, 5
			}
			b.driver.Chip.Run(program)
			b.pass(2 * time.Second)
			if b.requests[0].Dispatch || b.requests[0].Node != "" {
				t.Error("cores were read although no program has the chip open")
			}
			b.snap.Processes = []model.Process{holder("0.81.1")}
			b.pass(5 * time.Second)
			program.Now, program.Busy = program.Now+1_000_000, program.Busy+250_000
			b.driver.Chip.Run(program)
			b.pass(5 * time.Second)
			if d := b.device().Telemetry.Dispatch; d.Busy.V != 0.25 || d.Workers.V != 64 {
				t.Errorf("busy %+v, workers %+v; want 0.25 and 64", d.Busy, d.Workers)
			}
			b.driver.Chip.Ended(true) // killed: the signature stays
			b.pass(5 * time.Second)
			loads := b.reads()
			b.pass(10 * time.Second)
			for _, r := range b.requests[loads:] {
				if r.Dispatch {
					t.Error("a core that was silent is asked again")
				}
			}
			if d := b.device(); !d.Telemetry.BoardPower.Known() || d.Telemetry.Dispatch.Busy.Known() {
				t.Errorf("board power %+v, busy %+v", d.Telemetry.BoardPower, d.Telemetry.Dispatch.Busy)
			}
		})
	}
}
