package text

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestAppendHistory(t *testing.T) {
	nan := math.NaN()
	h := History{
		Title: "power.draw", Unit: "W", Decimals: 1, Start: time.Unix(0, 0), End: time.Unix(3600, 0),
		Lines: []Line{
			{"0 n300", []float64{1, 2, nan, 4}, []float64{3, 4, nan, 90}, []float64{2, 3, nan, 10}, 10},
			{"1", []float64{nan}, []float64{nan}, []float64{nan}, nan},
		},
	}
	got := string(AppendHistory(nil, h, false))
	for _, want := range []string{"power.draw [W]", "  0 n300  ▁▂ █  min 1.0  avg 5.0  max 90.0  last 10.0\n", "  1       ", "last N/A"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := string(AppendHistory(nil, h, true)); !strings.Contains(got, "_. @") {
		t.Errorf("in ASCII:\n%s", got)
	}
	if got := string(AppendHistory(nil, History{Title: "x"}, false)); !strings.Contains(got, "nothing is known") {
		t.Errorf("nothing:\n%s", got)
	}
}
