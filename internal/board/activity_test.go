package board

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestActivity(t *testing.T) {
	known, absent := model.Value[float64], model.Reading[float64]{}
	for _, c := range []struct {
		name               string
		power, limit, idle model.Reading[float64]
		want               model.Reading[float64]
		basis              string
	}{
		{"learned", known(65), known(120), known(10), known(0.5), "idle power learned: 65 W between 10 W and 120 W"},
		{"never seen idle", known(83), known(150), absent, absent, ""},
		{"nominal limit", known(16), model.NominalValue(150.0), known(16), known(0), "nominal limit"},
		{"below idle", known(5), known(120), known(10), known(0), ""},
		{"above the limit", known(500), known(120), known(10), known(1), ""},
		{"no power", model.Missing[float64](model.Hung, "dead"), known(1), known(0), model.Missing[float64](model.Hung, "dead"), ""},
		{"no limit", known(10), absent, known(5), absent, ""},
		{
			"limit below idle", known(10), known(5), known(8),
			model.Missing[float64](model.Implausible, "the power limit of 5 W is not above the idle power of 8 W"), "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Activity(c.power, c.limit, c.idle)
			if got.Ratio != c.want || !strings.Contains(got.Basis, c.basis) {
				t.Errorf("%s: %+v, want %+v with %q", c.name, got, c.want, c.basis)
			}
		})
	}
}
