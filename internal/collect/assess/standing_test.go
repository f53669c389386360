package assess

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// TestSuspicionStands: a busy moment of the host ends no suspicion, and raises
// none; anything that completes does end it.
func TestSuspicionStands(t *testing.T) {
	start := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	chip := model.ChipWork{Device: 0, LastRecord: start, Longest: 0.01}
	wait := start.Add(time.Second)
	snapshot := func(after time.Duration, cpu, host float64) *model.Snapshot {
		return &model.Snapshot{
			Time: start.Add(after), Host: model.Host{CPU: model.Value(host)},
			Devices: []model.Device{{Index: 0, State: model.StateOK, Power: model.Value(atIdle)}},
			Processes: []model.Process{{
				PID: 5, StartTicks: 7, State: model.Running, CPU: model.Value(cpu),
				Work: model.ProcessWork{Watched: true, Chips: []model.ChipWork{chip}, Host: model.HostWork{LastEnqueue: wait, WaitingSince: wait}},
			}},
		}
	}
	r := rhythms{{PID: 5, StartTicks: 7}: {work: map[int]*level{0: {value: atWork, n: settledPower}}}}
	for _, c := range []struct {
		name      string
		after     time.Duration
		cpu, host float64
		completed bool
		want      bool
	}{
		{"starved before any suspicion", 15 * time.Second, 2, 100, false, false},
		{"silent for long enough", 40 * time.Second, 100, 20, false, true},
		{"starved for a moment", 41 * time.Second, 2, 100, false, true},
		{"on a busy host", 42 * time.Second, 100, 100, false, true},
		{"a program completed", 43 * time.Second, 100, 20, true, false},
		{"starved again", 44 * time.Second, 2, 100, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.completed {
				chip.LastRecord = start.Add(c.after)
			}
			if got := len(r.stuck(snapshot(c.after, c.cpu, c.host))) > 0; got != c.want {
				t.Errorf("suspected: %v", got)
			}
		})
	}
}
