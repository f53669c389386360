package top

import (
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
)

func TestParseChart(t *testing.T) {
	st := openAfter(t, 1, 4, 80, 24)
	for text, want := range map[string]string{
		"power":                 "",
		"pcie_to+pcie_from@0/2": "",
		"power@0000:01:00.0":    "",
		"power+dram":            "different units",
		"pwoer":                 `unknown metric "pwoer"`,
		"power+":                `unknown metric ""`,
		"power@":                "name devices behind the @",
		"power@0//2":            "name devices behind the @",
		"":                      `unknown metric ""`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := st.s.parseChart(text)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
		})
	}
	if got := metricNames([]string{"power@0", "pcie_to+pcie_from", "power"}); !slices.Equal(got, []string{"power", "pcie_to", "pcie_from"}) {
		t.Errorf("metrics %q", got)
	}
}

// Several metrics share a chart, a line each, named; a chart can be of some
// devices only.
func TestChartOfSeveralMetrics(t *testing.T) {
	st := open(t, 4, 120, 40, func(c *config.Config) { c.Top.Charts.Metrics = []string{"pcie_to+pcie_from", "power@0/2"} })
	for _, text := range []string{"to ", "from ", " Power W  0 2 "} {
		if !st.has(text) {
			t.Errorf("no %q:\n%s", text, st.draw())
		}
	}
	if st.has(" Power W  0 1") {
		t.Errorf("a device that was not chosen:\n%s", st.g)
	}
}

// A sum without one of its parts is at least so much; an average is of those
// that are known.
func TestTogether(t *testing.T) {
	at := func(v float32, b model.Bound) history.Bucket {
		return history.Bucket{State: history.Sampled, Min: v, Max: v, Last: v, Bound: b}
	}
	a := &chartArea{buckets: [][]history.Bucket{
		{at(2, model.Exact), at(2, model.Exact), {State: history.Gap}},
		{at(4, model.Unsure), {}, {}},
	}}
	sum := slices.Clone(a.together(2, 2, 3, true))
	if sum[0] != at(6, model.Unsure) || sum[1] != at(2, model.AtLeast) || sum[2].State != history.Gap {
		t.Errorf("sum %+v", sum)
	}
	mean := a.together(2, 2, 3, false)
	if mean[0] != at(3, model.Unsure) || mean[1] != at(2, model.Exact) {
		t.Errorf("average %+v", mean)
	}
}
