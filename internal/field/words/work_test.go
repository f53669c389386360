package words

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// A lower bound never says more than is known.
func TestBusy(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		bound model.Bound
		want  string
	}{
		{0.625, model.Exact, "63 %"},
		{0.625, model.AtLeast, "≥62 %"},
		{0.62, model.AtLeast, "≥62 %"},
		{0.29, model.AtLeast, "≥29 %"},
		{0.0079, model.AtLeast, "≥0.7 %"},
		{0.9999, model.AtLeast, "≥99.9 %"},
		{1, model.AtLeast, "≥100 %"},
		{0.999, model.Unsure, "~99.9 %"},
		{0.0001, model.Exact, "<0.1 %"},
	} {
		t.Run(fmt.Sprint(c.ratio, " ", c.bound), func(t *testing.T) {
			if got := Busy(&model.Work{Busy: model.Value(c.ratio), Bound: c.bound}); got != c.want {
				t.Errorf("%v %v: %q, want %q", c.ratio, c.bound, got, c.want)
			}
		})
	}
}
