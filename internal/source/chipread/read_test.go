package chipread_test

import (
	"maps"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/board/telemetry"
	"github.com/ttmon/ttmon/internal/lab/sim/arc"
	"github.com/ttmon/ttmon/internal/lab/sim/arc/emulated"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/chipread"
)

// ways are all that there are to a chip.
var ways = []struct {
	name string
	arch model.Arch
	way  model.TelemetryWay
}{
	{"wormhole by resource4", model.Wormhole, model.ByResource},
	{"wormhole by its node", model.Wormhole, model.ByNode},
	{"blackhole by its node", model.Blackhole, model.ByNode},
}

func chip(arch model.Arch) (*emulated.Driver, chipread.Request) {
	c := arc.New(arch, arc.Fixed(arc.Sample(arch)))
	d := emulated.New(arch, c)
	return d, chipread.Request{Arch: arch, Way: model.ByNode, BusID: d.BusID, First: true}
}

// untouched fails if a read left anything behind. It has no way to write.
func untouched(t *testing.T, d *emulated.Driver) {
	t.Helper()
	if open, windows, mappings := d.Left(); open+windows+mappings > 0 {
		t.Errorf("left behind: %d descriptors, %d windows, %d mappings", open, windows, mappings)
	}
}

func TestAllWords(t *testing.T) {
	for _, w := range ways {
		for _, holes := range []bool{false, true} {
			t.Run(w.name, func(t *testing.T) {
				d, r := chip(w.arch)
				r.Way = w.way
				d.Chip.SetFaults(arc.Faults{Holes: holes})
				got := chipread.Read(d, &r)
				if got.Cause != "" {
					t.Fatalf("%s (errno %d)", got.Cause, got.Errno)
				}
				want := telemetry.Words{}
				for tag, word := range arc.Sample(w.arch) {
					if len(telemetry.Wanted(w.arch, []telemetry.Entry{{Tag: tag}}, true)) > 0 {
						want[tag] = word
					}
				}
				if diff := cmp.Diff(want, got.Words); diff != "" {
					t.Error(diff)
				}
				if got := len(got.Index.Entries); got != len(arc.Sample(w.arch)) {
					t.Errorf("%d entries, want %d", got, len(arc.Sample(w.arch)))
				}
				untouched(t, d)
			})
		}
	}
}

// A second sample of a boot reads two pointers and the words that move.
func TestKnownTable(t *testing.T) {
	d, r := chip(model.Blackhole)
	first := chipread.Read(d, &r)
	before := d.Chip.Reads()
	r.Known, r.First = &first.Index, false
	second := chipread.Read(d, &r)
	if n := d.Chip.Reads() - before; n != uint64(2+len(second.Words)) {
		t.Errorf("%d loads for %d words", n, len(second.Words))
	}
	if len(second.Words) >= len(first.Words) || len(second.Words) == 0 {
		t.Errorf("%d words, the first sample had %d", len(second.Words), len(first.Words))
	}
	d.Chip.SetFaults(arc.Faults{TableAt: 0x1001_0000 + 4*4}) // the table has moved: its directory is read again
	if again := chipread.Read(d, &r); again.Cause != model.TableUnknown && again.Cause != model.TableInvalid {
		t.Errorf("a table that moved onto nonsense: %q", again.Cause)
	}
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(*emulated.Driver)
		want    model.TelemetryCause
	}{
		{"an exclusive holder", func(d *emulated.Driver) { d.OpenError = unix.EAGAIN }, model.ExclusiveHolder},
		{"no right", func(d *emulated.Driver) { d.OpenError = unix.EACCES }, model.ReadDenied},
		{"no right, by the kernel's lockdown", func(d *emulated.Driver) { d.OpenError = unix.EPERM }, model.ReadDenied},
		{"gone", func(d *emulated.Driver) { d.OpenError = unix.ENOENT }, model.ChipGone},
		{"removed while its node is open elsewhere", func(d *emulated.Driver) { d.OpenError = unix.ENODEV }, model.ChipGone},
		{"a node without a driver", func(d *emulated.Driver) { d.OpenError = unix.ENXIO }, model.ChipGone},
		{"an open that fails otherwise", func(d *emulated.Driver) { d.OpenError = unix.EMFILE }, model.ReaderFailed},
		{"another chip has the number", func(d *emulated.Driver) { d.BusID = "0000:02:00.0" }, model.ChipGone},
		{"reset window", func(d *emulated.Driver) { d.AllocateError = unix.ENODEV }, model.ResetUnderWay},
		{"no window free", func(d *emulated.Driver) { d.AllocateError = unix.ENOMEM }, model.NoWindowFree},
		{"a size the driver does not have", func(d *emulated.Driver) { d.AllocateError = unix.EINVAL }, model.WindowRefused},
		{"a driver without windows", func(d *emulated.Driver) { d.AllocateError = unix.ENOTTY }, model.WindowRefused},
		{"window outside of the BAR", func(d *emulated.Driver) { d.MapError = unix.ENXIO }, model.WindowOutsideBAR},
		{"reset before the window is mapped", func(d *emulated.Driver) { d.MapError = unix.ENODEV }, model.ResetUnderWay},
		{"a mapping that fails otherwise", func(d *emulated.Driver) { d.MapError = unix.ENOMEM }, model.ReaderFailed},
		{"lockdown", func(d *emulated.Driver) { d.MapError = unix.EPERM }, model.ReadDenied},
		{"reset before the window is aimed", func(d *emulated.Driver) { d.AimError = unix.ENODEV }, model.ResetUnderWay},
		{"no window any more when it is aimed", func(d *emulated.Driver) { d.AimError = unix.EINVAL }, model.WindowRefused},
		{"reset between two loads", func(d *emulated.Driver) { d.AfterLoads = 20 }, model.ResetWhileRead},
		{"off the bus", func(d *emulated.Driver) { d.Chip.SetFaults(arc.Faults{Dead: true}) }, model.ReadAllOnes},
		{"no table", func(d *emulated.Driver) { d.Chip.SetFaults(arc.Faults{NoTable: true}) }, model.NoTable},
		{"a table of the future", func(d *emulated.Driver) { d.Chip.SetFaults(arc.Faults{Version: 0x0002_0000}) }, model.TableUnknown},
		{"too many entries", func(d *emulated.Driver) { d.Chip.SetFaults(arc.Faults{Count: 1025}) }, model.TableInvalid},
		{"a pointer elsewhere", func(d *emulated.Driver) { d.Chip.SetFaults(arc.Faults{TableAt: 0x2000_0000}) }, model.TableInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, r := chip(model.Blackhole)
			tt.prepare(d)
			if got := chipread.Read(d, &r); got.Cause != tt.want {
				t.Errorf("cause %q, want %q", got.Cause, tt.want)
			}
			if tt.want != model.ResetWhileRead { // the process ends then, and the driver frees all
				untouched(t, d)
			}
		})
	}
}

// One load is all that a chip off the bus is asked.
func TestStopsAtAllOnes(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			d, r := chip(w.arch)
			r.Way = w.way
			d.Chip.SetFaults(arc.Faults{Dead: true})
			if got := chipread.Read(d, &r); got.Cause != model.ReadAllOnes || d.Chip.Reads() != 1 {
				t.Errorf("%q after %d loads", got.Cause, d.Chip.Reads())
			}
		})
	}
}

func TestOtherPanicsAreNotHidden(t *testing.T) {
	d, r := chip(model.Wormhole)
	defer func() {
		if e := recover(); e == nil {
			t.Error("a bug was treated as a reset")
		} else if _, ok := e.(runtime.Error); ok {
			t.Error(e)
		}
	}()
	d.Chip = arc.New(model.Wormhole, func(uint16) (uint32, bool) { panic("BUG: a test") })
	chipread.Read(d, &r)
}

var dispatchAt = map[model.Arch]arc.Dispatch{
	model.Wormhole:  {L1: 0x1_0000, X: 18, Y: 20, Workers: 64, Now: 1_000_000, Busy: 100_000, Programs: 7},
	model.Blackhole: {L1: 0x1_0000, X: 3, Y: 5, Workers: 110, Now: 1 << 40, Busy: 1 << 36, Programs: 9},
}

func TestDispatch(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			d, r := chip(w.arch)
			r.Way, r.Node, r.Dispatch = w.way, "/dev/tenstorrent/0", true
			program := dispatchAt[w.arch]
			d.Chip.Run(program)
			got := chipread.Read(d, &r)
			if got.Dispatch == nil {
				t.Fatalf("no account of dispatch: %q %q", got.Cause, got.NoDispatch)
			}
			want := &chipread.Dispatch{Version: 1, Workers: int(program.Workers), Programs: program.Programs, Queues: []chipread.Queue{{Now: program.Now, Busy: program.Busy}}}
			if diff := cmp.Diff(want, got.Dispatch); diff != "" {
				t.Error(diff)
			}
			program.Start = program.Now - 1000 // a program runs
			d.Chip.Run(program)
			if q := chipread.Read(d, &r).Dispatch.Queues[0]; q.Busy != program.Busy+1000 {
				t.Errorf("busy %d with a program that runs since 1000 cycles, want %d", q.Busy, program.Busy+1000)
			}
			untouched(t, d)
		})
	}
}

// A program that was killed leaves its signature, and cores without a clock.
func TestDispatchRefusals(t *testing.T) {
	legal := dispatchAt[model.Blackhole]
	for _, tt := range []struct {
		name    string
		prepare func(*arc.Chip)
		want    chipread.DispatchCause
	}{
		{"no program", func(*arc.Chip) {}, chipread.NoProgram},
		{"closed", func(c *arc.Chip) { c.Run(legal); c.Ended(false) }, chipread.NoProgram},
		{"killed, and gated", func(c *arc.Chip) { c.Run(legal); c.Ended(true) }, chipread.CoreSilent},
		{"slow dispatch", func(c *arc.Chip) { d := legal; d.Slow = true; c.Run(d) }, chipread.SlowDispatch},
		{"a core that is none", func(c *arc.Chip) { d := legal; d.X = 8; c.Run(d) }, chipread.ControlInvalid},
		{"an address that is not aligned", func(c *arc.Chip) { d := legal; d.L1++; c.Run(d) }, chipread.ControlInvalid},
		{"an address behind L1", func(c *arc.Chip) { d := legal; d.L1 = 1536<<10 - 16; c.Run(d) }, chipread.ControlInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, r := chip(model.Blackhole)
			r.Dispatch, r.Ethernet = true, []int{0}
			d.Chip.SetLink(arc.Link{Channel: 0, Up: true})
			tt.prepare(d.Chip)
			table := chipread.Read(d, &chipread.Request{Arch: r.Arch, Way: r.Way, BusID: r.BusID, First: true})
			got := chipread.Read(d, &r)
			if got.NoDispatch != tt.want || got.Dispatch != nil {
				t.Errorf("cause %q, want %q", got.NoDispatch, tt.want)
			}
			if !maps.Equal(got.Words, table.Words) {
				t.Error("the table was lost")
			}
			if silent := tt.want == chipread.CoreSilent; silent != (len(got.Links) == 0) {
				t.Errorf("%d links after %q", len(got.Links), got.NoDispatch)
			}
			untouched(t, d)
		})
	}
}

func TestEthernet(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			d, r := chip(w.arch)
			r.Way, r.Node, r.Ethernet = w.way, "/dev/tenstorrent/0", []int{0, 9, 3}
			for _, c := range r.Ethernet {
				d.Chip.SetLink(arc.Link{Channel: c, Up: true, Retrains: uint32(c), Corrected: 5<<32 + uint64(c), Uncorrected: uint64(c)})
			}
			got := chipread.Read(d, &r)
			want := []chipread.Link{{0, 0, 5 << 32, 0}, {9, 9, 5<<32 + 9, 9}, {3, 3, 5<<32 + 3, 3}}
			if diff := cmp.Diff(want, got.Links); diff != "" {
				t.Error(diff)
			}
			untouched(t, d)
		})
	}
}

// A core whose firmware does not run costs its own counters; one that does not
// answer ends the reading of cores.
func TestEthernetCoresThatAreNotRead(t *testing.T) {
	for _, w := range ways {
		for _, tt := range []struct {
			name string
			nine *arc.Link // nil: it does not answer
			want []int
		}{
			{"asleep", &arc.Link{Channel: 9, Asleep: true}, []int{0, 3}},
			{"silent", nil, []int{0}},
		} {
			t.Run(w.name+"/"+tt.name, func(t *testing.T) {
				d, r := chip(w.arch)
				r.Way, r.Node, r.Ethernet = w.way, "/dev/tenstorrent/0", []int{0, 9, 3}
				d.Chip.SetLink(arc.Link{Channel: 0, Up: true})
				d.Chip.SetLink(arc.Link{Channel: 3, Up: true})
				if tt.nine != nil {
					d.Chip.SetLink(*tt.nine)
				}
				var got []int
				for _, l := range chipread.Read(d, &r).Links {
					got = append(got, l.Channel)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				untouched(t, d)
			})
		}
	}
}
