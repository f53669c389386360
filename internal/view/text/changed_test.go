package text

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/past/history/changed"
)

func TestAppendChanged(t *testing.T) {
	device := 9
	from := time.Date(2026, 11, 15, 3, 0, 0, 0, time.Local)
	a := changed.Answer{From: from, To: from.Add(10 * time.Minute), Since: from.Add(-40 * time.Minute), Series: 1204, More: 3, Changes: []changed.Change{
		{Metric: "tenstorrent_device_condition", Title: "throttled", Device: &device, Kind: changed.Moved, Score: 100, Before: changed.Part{Samples: 9}, During: changed.Part{Samples: 9, Mean: 1}},
		{Metric: "clocks.ai", Title: "AI Clock", Unit: "MHz", Device: &device, Kind: changed.Moved, Score: 25.4, Before: changed.Part{Samples: 9, Mean: 1000}, During: changed.Part{Samples: 9, Mean: 746}},
	}, Began: changed.Apart{Count: 1, Series: []changed.Change{
		{Metric: "memory.used", Title: "DRAM Used", Unit: "MiB", Device: &device, Kind: changed.Began, Score: 100, During: changed.Part{Samples: 9, Mean: 2048}},
	}}, Stopped: changed.Apart{Count: 12, Series: []changed.Change{
		{Metric: "tenstorrent_x", Title: "x\x1b[2J", Labels: map[string]string{"a": "b"}, Kind: changed.Stopped, Score: 100, Before: changed.Part{Samples: 2, Mean: 0.25}},
		{Metric: "clocks.ai", Title: "AI Clock", Device: &device, Kind: changed.Stopped, Score: 100},
		{Metric: "power.draw", Title: "Core Power", Device: &device, Kind: changed.Stopped, Score: 100},
	}}}
	got := string(AppendChanged(nil, &a, 0))
	for _, want := range []string{
		"2026-11-15 03:00:00 to 2026-11-15 03:10:00, compared with the 40 min before\n",
		"    100    9  throttled  0         1\n",
		"     25    9  AI Clock   1000 MHz  746 MHz  (-25 %)\n",
		"\n12 series became unknown: host: x", " a=b; device 9: AI Clock, Core Power and 9 more\n", "\n1 series became known: device 9: DRAM Used\n", "… and 3 more that changed less", "1204 series compared.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("a title reaches the terminal as it is:\n%q", got)
	}
	for name, c := range map[string]struct {
		a    changed.Answer
		want string
	}{
		"away":    {changed.Answer{Away: true}, "nothing to compare"},
		"nothing": {changed.Answer{Series: 7}, "None of 7 series changed"},
		"partial": {changed.Answer{Partial: true, Changes: a.Changes[:1]}, "mark a shorter stretch"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(AppendChanged(nil, &c.a, 0)); !strings.Contains(got, c.want) {
				t.Errorf("no %q in\n%s", c.want, got)
			}
		})
	}
}

// A lost device has many series: their list fits the terminal, and is whole.
func TestChangedListsAreWrapped(t *testing.T) {
	device := 3
	series := make([]changed.Change, 20)
	for i := range series {
		series[i] = changed.Change{Title: "Core Power " + strconv.Itoa(i), Device: &device, Kind: changed.Stopped}
	}
	a := changed.Answer{Series: 40, Stopped: changed.Apart{Count: 25, Series: series}, Changes: []changed.Change{{Title: "AI Clock", Kind: changed.Moved}}}
	one := string(AppendChanged(nil, &a, 0))
	for _, width := range []int{60, 80, 200} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			got := string(AppendChanged(nil, &a, width))
			_, list, _ := strings.Cut(got, "25 series")
			for _, line := range strings.Split("25 series"+list, "\n") {
				if words.Width(line) > width {
					t.Errorf("%d cells: %q", words.Width(line), line)
				}
			}
			if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(one), " ") {
				t.Errorf("a part is missing:\n%s", got)
			}
		})
	}
}

// TestChangedFigures: a rate of bytes is in a unit that people read, not a raw
// float; the mean of a count keeps its fraction.
func TestChangedFigures(t *testing.T) {
	for name, c := range map[string]struct {
		metric, unit   string
		means          [2]float64
		before, during string
	}{
		"rate of bytes": {"pcie.rx.total", "B/s", [2]float64{84633159.08, 0}, "81 MiB/s", "0 B/s  (-100 %)"},
		"count":         {"processes.count", "", [2]float64{0, 0.3}, "0", "0.3"},
		"power":         {"power.draw", "W", [2]float64{14.4, 14.4}, "14 W", "14 W  (+0 %)"},
	} {
		t.Run(name, func(t *testing.T) {
			before, during := ChangedFigures(&changed.Change{
				Kind: changed.Moved, Metric: c.metric, Unit: c.unit,
				Before: changed.Part{Mean: c.means[0], Samples: 5}, During: changed.Part{Mean: c.means[1], Samples: 5},
			})
			if before != c.before || during != c.during {
				t.Errorf("%q, %q, want %q, %q", before, during, c.before, c.during)
			}
		})
	}
}
