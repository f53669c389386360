package text

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

func TestAppendFleet(t *testing.T) {
	nan := math.NaN()
	chips := func(states ...model.ConditionKind) (list []FleetChip) {
		for i, s := range states {
			list = append(list, FleetChip{Device: i, State: s})
		}
		return list
	}
	f := Fleet{
		Hosts: []FleetHost{
			{Name: "well", Chips: assess.Tally{model.ConditionOK: 2}, States: chips(model.ConditionOK, model.ConditionOK), Temperature: 40, Power: 100, Busy: 0.5, Used: 1 << 30, Size: 4 << 30},
			{Name: "ill", Chips: assess.Tally{model.ConditionOK: 1, model.ConditionHung: 1}, States: chips(model.ConditionOK, model.ConditionHung), Temperature: nan, Power: nan, Busy: 0.255, BusyBound: model.AtLeast, Used: 1 << 30, Size: 4 << 30, Bound: model.AtLeast, Alerts: 1},
			{Name: "hot", Chips: assess.Tally{model.ConditionOK: 32}, Temperature: 80, Power: 12000, Busy: nan, Used: nan, Size: nan},
		},
		Alerts: []FleetAlert{{Name: "ChipHung", Severity: "critical", Count: 1, Hosts: []string{"ill"}}},
	}
	SortFleet(f.Hosts)
	got := string(AppendFleet(nil, f, time.Now(), 2))
	for _, want := range []string{
		"3 hosts  36 devices  1 hung, 35 ok  hottest 80 °C  ≥12.1 kW  busy ≥4 %  DRAM ≥2.0/8.0 GiB\n",
		"alert ChipHung (critical): 1 on ill\n", "  ill   ■H ", "≥25 %  ≥1.0/4.0 GiB  1 hung, 1 ok  1 alert\n", "  hot   32 devices ", "… and 1 host more",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := string(ASCII([]byte(got))); !strings.Contains(got, "  ill   #H ") || !strings.Contains(got, "  >12.1 kW  busy >4 %  DRAM >2.0/8.0 GiB") {
		t.Errorf("in ASCII:\n%s", got)
	}
	if strings.Index(got, "ill  ") > strings.Index(got, "hot  ") {
		t.Errorf("the worst is not first:\n%s", got)
	}
	f.Hosts[1].Name = strings.Repeat("long", 20) + "\x1b[2J"
	lines := strings.Split(string(AppendFleet(nil, f, time.Now(), 2)), "\n")
	if a, b := lines[4], lines[5]; strings.Contains(b, "\x1b") || words.Width(a[:strings.Index(a, "N/A")]) != words.Width(b[:strings.Index(b, "80 °C")])+2 {
		t.Errorf("the columns of a long name are elsewhere:\n%s\n%s", a, b)
	}
	one := string(AppendFleetHost(nil, &f.Hosts[0], time.Now()))
	if !strings.Contains(one, "hung") || !strings.Contains(one, "#  BOARD") {
		t.Errorf("one host:\n%s", one)
	}
}
