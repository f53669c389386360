package text

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func TestAppendHistory(t *testing.T) {
	nan := math.NaN()
	h := History{
		Title: "power.draw", Unit: "W", Decimals: 1, Start: time.Unix(0, 0), End: time.Unix(3600, 0),
		Lines: []Line{
			{Name: "0 n300", Min: []float64{1, 2, nan, 4}, Max: []float64{3, 4, nan, 90}, Avg: []float64{2, 3, nan, 10}, Last: 10},
			{Name: "1", Min: []float64{nan}, Max: []float64{nan}, Avg: []float64{nan}, Last: nan},
			{Name: "2", Min: []float64{1}, Max: []float64{2}, Avg: []float64{1}, Last: 2, Bound: model.Unsure, LastBound: model.AtLeast},
		},
	}
	got := string(AppendHistory(nil, h))
	for _, want := range []string{"power.draw [W]", "  0 n300  ▁▂ █  min 1.0  avg 5.0  max 90.0  last 10.0\n", "  1       ", "last –", "min ~1.0  avg ~1.0  max ~2.0  last ≥2.0"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := cells.ASCII(string(AppendHistory(nil, h))); !strings.Contains(got, "_. #") || !strings.Contains(got, "last >=2.0") {
		t.Errorf("in ASCII:\n%s", got)
	}
	if got := string(AppendHistory(nil, History{Title: "x"})); !strings.Contains(got, "nothing is known") {
		t.Errorf("nothing:\n%s", got)
	}
}
