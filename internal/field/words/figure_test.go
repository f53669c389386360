package words_test

import (
	"testing"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		b                  model.Bytes
		text, column, sent string
		of, ofColumn       string // of 24 GiB
	}{
		{model.ExactBytes(10952166604), "10.2 GiB", " 10.2 GiB", "10.2 GiB", "10.2/24.0 GiB", " 10.2/24.0 GiB"},
		{model.BoundBytes(10952166604, model.AtLeast), "≥10.2 GiB", "≥10.2 GiB", "≥ 10.2 GiB", "≥10.2/24.0 GiB", "≥10.2/24.0 GiB"},
		{model.BoundBytes(2*gib, model.Unsure), "~2.0 GiB", " ~2.0 GiB", "~2.0 GiB", "~2.0/24.0 GiB", " ~2.0/24.0 GiB"},
		{model.BoundBytes(0, model.Unsure), "~0 B", "   ~0 B  ", "~0 B", "~0/24.0 GiB", "   ~0/24.0 GiB"},
		{model.BoundBytes(1, model.AtLeast), "≥1 B", "   ≥1 B  ", "≥ 1 B", "≥<0.1/24.0 GiB", "≥<0.1/24.0 GiB"},
		{model.ExactBytes(0), "0 B", "    0 B  ", "0 B", "0/24.0 GiB", "    0/24.0 GiB"},
		{model.NoBytes(model.Denied), "denied", "denied", "denied", "denied", "denied"},
		{model.Bytes{}, "–", "–", "–", "–", "–"},
	} {
		t.Run(c.text, func(t *testing.T) {
			for _, got := range []struct{ form, got, want string }{
				{"Figure", words.Figure(c.b), c.text},
				{"FigureColumn", words.FigureColumn(c.b), c.column},
				{"FigureInText", words.FigureInText(c.b), c.sent},
				{"FigureOf", words.FigureOf(c.b, 24*gib), c.of},
				{"FigureOfColumn", words.FigureOfColumn(c.b, 24*gib), c.ofColumn},
			} {
				if got.got != got.want {
					t.Errorf("%s(%v) = %q, want %q", got.form, c.b, got.got, got.want)
				}
			}
		})
	}
}

// Whatever the value and its bound, a column form takes the same number of cells.
func TestFigureColumnsNeverJump(t *testing.T) {
	for shift := range 50 {
		for _, bound := range []model.Bound{model.Exact, model.AtLeast, model.Unsure} {
			b := model.BoundBytes(uint64(1)<<shift, bound)
			if got := words.FigureColumn(b); words.Width(got) != words.FigureWidth {
				t.Errorf("FigureColumn(%v) = %q takes %d cells", b, got, words.Width(got))
			}
			if got := words.FigureOfColumn(b, 1<<49); words.Width(got) != words.FigurePairWidth {
				t.Errorf("FigureOfColumn(%v) = %q takes %d cells", b, got, words.Width(got))
			}
		}
	}
}

// L1 is taken in lockstep on every core: without the allocator's own word
// there is nothing that could be read as how full it is.
func TestL1WithoutTheAllocator(t *testing.T) {
	u := &model.PoolUse{Used: model.BoundBytes(38*mib, model.Unsure), Total: model.Value(uint64(180 * mib))}
	if got := words.Pool(model.L1, u, model.TrackOK); got != "~38 MiB buf" {
		t.Errorf("Pool = %q", got)
	}
	if _, _, ok := words.Ratio(model.L1, u); ok {
		t.Error("a ratio of buffers to the allocator's capacity")
	}
	u.Occupied = model.ExactBytes(90 * mib)
	if got := words.Pool(model.L1, u, model.TrackOK); got != "90/180 MiB" {
		t.Errorf("Pool = %q", got)
	}
	if ratio, bound, ok := words.Ratio(model.L1, u); !ok || ratio != 0.5 || bound != model.Exact {
		t.Errorf("Ratio = %v, %v, %v", ratio, bound, ok)
	}
	dram := &model.PoolUse{Used: model.BoundBytes(6*gib, model.AtLeast), Total: model.Value(uint64(12 * gib))}
	if ratio, bound, ok := words.Ratio(model.DRAM, dram); !ok || ratio != 0.5 || bound != model.AtLeast {
		t.Errorf("Ratio of DRAM = %v, %v, %v", ratio, bound, ok)
	}
	if got := words.Pool(model.L1, &model.PoolUse{}, model.TrackDenied); got != "denied" {
		t.Errorf("Pool of nothing = %q", got)
	}
}

func TestSoftBar(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		bound model.Bound
		want  string
	}{
		{0.5, model.Exact, "▓▓░░"}, {0.5, model.Unsure, "▓▒░░"}, {0.01, model.AtLeast, "▒░░░"}, {0, model.Unsure, "░░░░"}, {2, model.AtLeast, "▓▓▓▒"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := words.SoftBar(c.ratio, 4, c.bound); got != c.want {
				t.Errorf("SoftBar(%v, %v) = %q, want %q", c.ratio, c.bound, got, c.want)
			}
		})
	}
}
