package board

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

func card(t *testing.T, name string) Board {
	t.Helper()
	b, ok := ByCard(name)
	if !ok {
		t.Fatalf("no board %q", name)
	}
	return b
}

func TestCompleteFillsWhatIsAbsent(t *testing.T) {
	var d model.Device
	card(t, "p150a").Complete(&d, "19.9.0.0")
	n := model.NominalValue[float64]
	if diff := cmp.Diff(map[string]model.Reading[float64]{
		"throttle": n(90), "shutdown": n(110), "power": n(150), "board": n(300), "voltage": n(0.9), "current": n(200), "aiclk": n(1350),
	}, map[string]model.Reading[float64]{
		"throttle": d.TemperatureLimit, "shutdown": d.ShutdownTemperature, "power": d.PowerLimit, "board": d.BoardPowerLimit,
		"voltage": d.VoltageLimit, "current": d.CurrentLimit, "aiclk": d.AICLKMax,
	}); diff != "" {
		t.Error(diff)
	}
	if d.Cores != model.NominalValue(120) || d.Board != model.Value("p150a") {
		t.Errorf("cores %+v, board %+v", d.Cores, d.Board)
	}
	if d.Power.Known() || d.Temperature.Known() || d.AICLK.Known() || d.Fan.Known() {
		t.Error("a measurement was made up")
	}
}

func TestCompleteRespectsTheDriver(t *testing.T) {
	d := model.Device{
		Board:            model.Value("p150a"),
		PowerLimit:       model.Value(123.0),
		TemperatureLimit: model.Missing[float64](model.Resetting, ""),
		CurrentLimit:     model.Missing[float64](model.Denied, "not yours"),
		Fan:              model.Missing[float64](model.Absent, "no tag"),
	}
	card(t, "p150a").Complete(&d, "")
	if d.PowerLimit != model.Value(123.0) {
		t.Errorf("the limit that was read became %+v", d.PowerLimit)
	}
	if d.TemperatureLimit.Status != model.Resetting || d.CurrentLimit.Reason() != "denied: not yours" {
		t.Errorf("reasons were replaced: %+v, %+v", d.TemperatureLimit, d.CurrentLimit)
	}
	if d.Fan.Why != "no tag" {
		t.Errorf("the fan's reason became %q", d.Fan.Why)
	}
	if d.Cores.Known() || d.Cores.Why == "" {
		t.Errorf("cores without a firmware version are %+v", d.Cores)
	}
}

func TestCompleteUnknownLimitsStayMissing(t *testing.T) {
	var d model.Device
	card(t, "n300").Complete(&d, "19.9.0.0")
	for name, r := range map[string]model.Reading[float64]{
		"core power": d.PowerLimit, "current": d.CurrentLimit, "throttle": d.TemperatureLimit, "shutdown": d.ShutdownTemperature, "voltage": d.VoltageLimit,
	} {
		t.Run(name, func(t *testing.T) {
			if r.Known() || r.Why == "" {
				t.Errorf("%s of an n300 is %+v: Wormhole firmware publishes no default", name, r)
			}
		})
	}
	if d.Fan.Known() || d.Fan.Why != "the driver offers no fan on wormhole" {
		t.Errorf("fan: %+v", d.Fan)
	}
}

func TestCompleteChipsAndCapacities(t *testing.T) {
	var d model.Device
	b := card(t, "n300")
	b.Complete(&d, "19.9.0.0")
	const dram, l1 = uint64(12 << 30), uint64(56 * 1_393_472)
	if len(d.Chips) != 2 || d.Chips[0].Name != "L" || d.Chips[0].Remote || d.Chips[1].Name != "R" || !d.Chips[1].Remote {
		t.Fatalf("chips of an n300: %+v", d.Chips)
	}
	for _, c := range d.Chips {
		if c.Memory.Pools[model.DRAM].Total != model.NominalValue(dram) || c.Memory.Pools[model.L1].Total != model.NominalValue(l1) {
			t.Errorf("chip %s: %+v", c.Name, c.Memory.Pools)
		}
		for _, p := range []model.Pool{model.L1Small, model.Trace, model.CB, model.Kernel} {
			if r := c.Memory.Pools[p].Total; r.Known() || r.Why != noCapacity {
				t.Errorf("chip %s: %s has a total: %+v", c.Name, p, r)
			}
		}
		if c.ID.Known() || c.Memory.Pools[model.DRAM].Used.Known() {
			t.Errorf("chip %s: a value was made up", c.Name)
		}
	}
	if d.Memory.Pools[model.DRAM].Total != model.NominalValue(2*dram) || d.Memory.Pools[model.L1].Total != model.NominalValue(2*l1) {
		t.Errorf("the board's totals: %+v", d.Memory.Pools)
	}

	once := cmp.Diff(d, model.Device{})
	b.Complete(&d, "19.9.0.0")
	if again := cmp.Diff(d, model.Device{}); again != once {
		t.Error("completing twice changed the device")
	}
}

func TestCompleteKeepsChips(t *testing.T) {
	d := model.Device{Chips: []model.Chip{{ID: model.Value(uint64(7)), Name: "L", Memory: model.Memory{Tracking: model.TrackOK}}}}
	d.Chips[0].Memory.Pools[model.DRAM].Used = model.ExactBytes(0)
	card(t, "n300").Complete(&d, "")
	c := d.Chips[0]
	if len(d.Chips) != 1 || c.ID != model.Value(uint64(7)) || c.Memory.Tracking != model.TrackOK || !c.Memory.Pools[model.DRAM].Used.Known() {
		t.Errorf("the source's chip was changed: %+v", d.Chips)
	}
	if !c.Memory.Pools[model.DRAM].Total.Known() {
		t.Error("its capacity was not filled in")
	}
}

func TestCompleteUnknownBoards(t *testing.T) {
	for _, c := range []struct {
		arch     model.Arch
		dram, l1 bool
	}{
		{model.Wormhole, true, false}, // every Wormhole has 12 GiB, but not the same cores
		{model.Blackhole, false, false},
		{model.UnknownArch, false, false},
	} {
		t.Run(string(c.arch), func(t *testing.T) {
			b, _ := Identify("", "", 0, c.arch)
			d := model.Device{Board: model.Missing[string](model.Absent, "")}
			b.Complete(&d, "19.9.0.0")
			if d.Board.Known() || d.Board.Why == "" || d.Cores.Known() || len(d.Chips) != 1 {
				t.Errorf("%s: board %+v, cores %+v, %d chips", c.arch, d.Board, d.Cores, len(d.Chips))
			}
			pools := d.Chips[0].Memory.Pools
			if pools[model.DRAM].Total.Known() != c.dram || pools[model.L1].Total.Known() != c.l1 {
				t.Errorf("%s: %+v", c.arch, pools)
			}
		})
	}
}

func TestCompleteNamesUnlistedBoards(t *testing.T) {
	d := model.Device{Board: model.Value("unknown")}
	b, _ := Identify("unknown", "0000008000000001", 0, model.Wormhole)
	b.Complete(&d, "")
	if d.Board != model.Value("nb_cb") {
		t.Errorf("the board is called %+v", d.Board)
	}
	d = model.Device{Board: model.Value("unknown")}
	b, _ = Identify("unknown", "", 0, model.Wormhole)
	b.Complete(&d, "")
	if d.Board != model.Value("unknown") {
		t.Errorf("what the driver said became %+v", d.Board)
	}
}
