package board

import (
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// TestCatalogue spells the rows out a second time, in the figures people
// compare with data sheets. A dash is a figure that is not published.
func TestCatalogue(t *testing.T) {
	const gib = float64(1 << 30)
	type row struct {
		code             uint16
		card             string
		chips, endpoints int
		dram             float64 // GiB a chip
		cores            int
		l1               float64 // MiB a chip
		tdp, tbp, tdc    float64
		fmax             float64
	}
	rows := []row{
		{0x14, "n300", 2, 1, 12, 64, 91.5, 0, 300, 0, 1000},
		{0x18, "n150", 1, 1, 12, 72, 102.9375, 0, 160, 0, 1000},
		{0x35, "galaxy-wormhole", 32, 32, 12, 80, 114.375, 0, 0, 0, 1000},
		{0x36, "p100", 1, 1, 31.875, 0, 0, 150, 0, 200, 1350},
		{0x40, "p150a", 1, 1, 31.875, 120, 180, 150, 300, 200, 1350},
		{0x41, "p150b", 1, 1, 31.875, 120, 180, 150, 300, 200, 1350},
		{0x42, "p150c", 1, 1, 31.875, 120, 180, 500, 450, 500, 1350},
		{0x43, "p100a", 1, 1, 27.890625, 120, 180, 150, 300, 200, 1350},
		{0x44, "p300b", 2, 2, 31.875, 120, 180, 94, 450, 500, 1350},
		{0x45, "p300a", 2, 2, 31.875, 120, 180, 86, 450, 500, 1350},
		{0x46, "p300c", 2, 2, 31.875, 120, 180, 125, 550, 500, 1350},
		{0x47, "galaxy-blackhole", 32, 32, 31.875, 130, 195, 130, 0, 500, 1350},
	}
	for _, want := range rows {
		t.Run(want.card, func(t *testing.T) {
			b, ok := ByCode(want.code)
			if !ok {
				t.Errorf("no board with code %#x", want.code)
				return
			}
			const bundle = "19.9.0.0"
			got := row{
				b.Code, b.Card, b.Chips, b.Endpoints, float64(b.DRAMBytes().V) / gib, b.Cores.At(bundle).V,
				float64(b.L1Bytes(bundle).V) / (1 << 20), b.PowerLimit.At(bundle).V, b.BoardPowerLimit.At(bundle).V,
				b.CurrentLimit, b.ClockMax,
			}
			if got != want {
				t.Errorf("%s:\n got %v\nwant %v", want.card, got, want)
			}
			if byCard, ok := ByCard(want.card); !ok || byCard.Code != want.code {
				t.Errorf("ByCard(%q) = %#x, %v", want.card, byCard.Code, ok)
			}
			if b.UMDType == "" || b.Unlisted || b.Note != "" && b.Card != "p100" {
				t.Errorf("%s is a board people own: UMD type %q, unlisted %v, note %q", b.Card, b.UMDType, b.Unlisted, b.Note)
			}
		})
	}
}

// TestCatalogueHoldsTogether checks what lookups and views rely on.
func TestCatalogueHoldsTogether(t *testing.T) {
	all := All()
	if !slices.IsSortedFunc(all, func(a, b Board) int { return int(a.Code) - int(b.Code) }) {
		t.Error("the catalogue is not sorted by code: ByCode searches it by halves")
	}
	for i, b := range all {
		if i > 0 && all[i-1].Code == b.Code {
			t.Errorf("code %#x is there twice", b.Code)
		}
		if b.Card == "" || b.Official == "" || b.Chips < 1 || len(b.Slots) == 0 {
			t.Errorf("%#x %q: name, official name %q, chips %d or slots %d missing", b.Code, b.Card, b.Official, b.Chips, len(b.Slots))
		}
		if b.Slots[0].Remote {
			t.Errorf("%s: the first chip must be the endpoint's own", b.Card)
		}
		if b.Endpoints > 0 && b.Endpoints*len(b.Slots) != b.Chips {
			t.Errorf("%s: %d endpoints of %d chips are not %d chips", b.Card, b.Endpoints, len(b.Slots), b.Chips)
		}
		if got := b.DRAMBytes(); got.Known() && (got.V > b.NominalDRAM || got.V < b.NominalDRAM*99/100) {
			t.Errorf("%s: %d bytes of DRAM do not fit the nominal %d", b.Card, got.V, b.NominalDRAM)
		}
		if b.Unlisted != (b.Note != "") && b.Card != "p100" {
			t.Errorf("%s: a board the driver does not know needs a note, others have none: %q", b.Card, b.Note)
		}
		if b.Arch == Grayskull && (b.ClockMax != 0 || b.Banks != 0 || b.Cores != (Figure[int]{})) {
			t.Errorf("%s: no figure of Grayskull is verified, none may be shown", b.Card)
		}
	}
	all[0].Card = "changed"
	if boards()[0].Card == "changed" {
		t.Error("All hands out the catalogue itself")
	}
}

func TestFirmwareChangesFigures(t *testing.T) {
	figures := func(card, bundle string) [3]float64 {
		b, _ := ByCard(card)
		return [3]float64{float64(b.Cores.At(bundle).V), b.PowerLimit.At(bundle).V, b.BoardPowerLimit.At(bundle).V}
	}
	for _, c := range []struct {
		card, bundle string
		want         [3]float64 // cores, W, W; 0: missing
	}{
		{"p150a", "18.11.0.0", [3]float64{140, 150, 300}},
		{"p150a", "19.4.2.0", [3]float64{140, 150, 300}},
		{"p150a", "19.5.0.1", [3]float64{120, 150, 300}}, // a candidate has its release's cores
		{"p150a", "19.5.0.0", [3]float64{120, 150, 300}},
		{"p150b", "80.17.0.0", [3]float64{140, 150, 300}}, // an old number, whatever it looks like
		{"p150b", "", [3]float64{0, 150, 300}},
		{"p150c", "", [3]float64{120, 500, 450}},
		{"p300c", "19.5.0.0", [3]float64{120, 0, 0}},
		{"p300c", "19.6.0.0", [3]float64{120, 125, 550}},
		{"p300b", "18.11.0.0", [3]float64{120, 0, 450}},
		{"p300b", "18.12.0.0", [3]float64{120, 94, 450}},
		{"galaxy-blackhole", "19.4.0.0", [3]float64{130, 170, 0}},
		{"galaxy-blackhole", "19.5.0.0", [3]float64{130, 130, 0}},
		{"galaxy-blackhole", "nonsense", [3]float64{130, 0, 0}},
	} {
		t.Run(c.card, func(t *testing.T) {
			if got := figures(c.card, c.bundle); got != c.want {
				t.Errorf("%s with firmware %q: cores, power, board power %v, want %v", c.card, c.bundle, got, c.want)
			}
		})
	}
	p150, _ := ByCard("p150a")
	if r := p150.L1Bytes(""); r.Known() || r.Why == "" {
		t.Errorf("L1 of a p150a with unknown firmware is %+v, want missing with a reason", r)
	}
	if got, want := p150.L1Bytes("19.0.0.0").V, uint64(140*1536<<10); got != want {
		t.Errorf("L1 of a p150a before 19.5 is %d, want %d", got, want)
	}
}

func TestEveryFigureIsNominal(t *testing.T) {
	for _, b := range boards() {
		for _, r := range []model.Reading[float64]{b.PowerLimit.At("19.9.0.0"), b.BoardPowerLimit.At("19.9.0.0"), nominal(b.ClockMax)} {
			if r.Known() && !r.Nominal || !r.Known() && r.Why == "" {
				t.Errorf("%s: %+v is neither nominal nor missing with a reason", b.Card, r)
			}
		}
	}
}
