package text

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func TestAppendFleet(t *testing.T) {
	nan := math.NaN()
	chips := func(states ...model.ConditionKind) (list []sums.Chip) {
		for i, s := range states {
			list = append(list, sums.Chip{Device: i, State: s})
		}
		return list
	}
	f := sums.Fleet{
		Hosts: []sums.Host{
			{Name: "well", Chips: assess.Tally{model.ConditionOK: 2}, States: chips(model.ConditionOK, model.ConditionOK), Temperature: 40, Power: 100, Busy: 0.5, Used: 1 << 30, Size: 4 << 30},
			{Name: "ill", Chips: assess.Tally{model.ConditionOK: 1, model.ConditionHung: 1}, States: chips(model.ConditionOK, model.ConditionHung), Temperature: nan, Power: nan, Busy: 0.255, BusyBound: model.AtLeast, Used: 1 << 30, Size: 4 << 30, Bound: model.AtLeast, Alerts: 1},
			{Name: "hot", Chips: assess.Tally{model.ConditionOK: 32}, Temperature: 80, Power: 12000, Busy: nan, Used: nan, Size: nan},
		},
		Alerts: []sums.Alert{{Name: "ChipHung", Severity: "critical", Count: 1, Hosts: []string{"ill"}}},
	}
	sums.Sort(f.Hosts)
	got := string(AppendFleet(nil, f, time.Now(), 2))
	for _, want := range []string{
		"3 hosts  36 devices  1 hung, 35 ok  hottest 80 °C  ≥12.1 kW  busy ≥4 %  DRAM ≥2.0/8.0 GiB\n",
		"alert ChipHung (critical): 1 on ill\n", "  ill   ■H ", "≥25 %  ≥1.0/4.0 GiB  1 hung, 1 ok  1 alert\n", "  hot   32 devices ", "… and 1 host more",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := cells.ASCII(got); !strings.Contains(got, "  ill   #H ") || !strings.Contains(got, ">=12.1 kW  busy >=4 %  DRAM >=2.0/8.0 GiB") {
		t.Errorf("in ASCII:\n%s", got)
	}
	if strings.Index(got, "ill  ") > strings.Index(got, "hot  ") {
		t.Errorf("the worst is not first:\n%s", got)
	}
	f.Hosts[1].Name = strings.Repeat("long", 20) + "\x1b[2J"
	lines := strings.Split(string(AppendFleet(nil, f, time.Now(), 2)), "\n")
	if a, b := lines[4], lines[5]; strings.Contains(b, "\x1b") || words.Width(a[:strings.Index(a, "–")]) != words.Width(b[:strings.Index(b, "80 °C")])+len("80 C") {
		t.Errorf("the columns of a long name are elsewhere:\n%s\n%s", a, b)
	}
	one := string(AppendFleetHost(nil, &f.Hosts[0], time.Now()))
	if !strings.Contains(one, "hung") || !strings.Contains(one, "#  BOARD") {
		t.Errorf("one host:\n%s", one)
	}
}

// However many chips a host has, its row says that one is in trouble: as a cell of its
// own, or in words where there is no room for a cell each.
func TestNoBadChipIsInvisible(t *testing.T) {
	var bad []model.ConditionKind
	for _, k := range assess.States() {
		if assess.LevelOf(k) > model.Fine {
			bad = append(bad, k)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, kind := rapid.IntRange(1, 200).Draw(t, "chips"), rapid.SampledFrom(bad).Draw(t, "state")
		at := rapid.IntRange(0, n-1).Draw(t, "which")
		h := sums.NewHost("a")
		for i := range n {
			c := sums.NewChip(i)
			if c.State = model.ConditionOK; i == at {
				c.State = kind
			}
			h.States = append(h.States, c)
			h.Chips[c.State]++
		}
		out := string(AppendFleet(nil, sums.Fleet{Hosts: []sums.Host{h}}, time.Now(), 5))
		row := out[strings.Index(out, "\n  a "):]
		if !strings.Contains(row, "1 "+words.Kind(kind)) {
			t.Fatalf("one of %d chips is %s:\n%s", n, kind, out)
		}
		if n <= 32 && strings.Count(row, words.StateMark(kind)) < 1 {
			t.Fatalf("chip %d has no cell of its own:\n%s", at, out)
		}
	})
}
