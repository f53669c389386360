package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// What became of processes that left their devices: one lives, one is gone, one
// waits for its parent, the number of one has a new owner, one was reported by the
// kernel.
func TestExits(t *testing.T) {
	dir := t.TempDir()
	for pid, state := range map[string]string{"1": "S", "3": "Z", "4": "S"} {
		start := "10"
		if pid == "4" {
			start = "99"
		}
		line := pid + " (x) " + state + " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " + start + strings.Repeat(" 0", 29) + " 9\n"
		if err := os.MkdirAll(filepath.Join(dir, "proc", pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "proc", pid, "stat"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	reported := model.Exit{ID: model.ProcessID{PID: 5, StartTicks: 10}, Time: at.Add(-time.Second), Status: model.Value(3 << 8)}
	e := exits{root: hostfs.At(dir), sources: func() []model.Exit { return []model.Exit{reported, {ID: model.ProcessID{PID: 99}}} }}
	var list []model.Process
	for pid := 1; pid <= 5; pid++ {
		list = append(list, model.Process{PID: pid, StartTicks: 10, State: model.Running, Devices: []model.DeviceUse{{}}})
	}
	s := &model.Snapshot{Time: at, Processes: list}
	if e.add(s); len(s.Exits) != 0 {
		t.Fatalf("%+v", s.Exits)
	}
	s = &model.Snapshot{Time: at}
	e.add(s)
	if len(s.Exits) != 5 {
		t.Fatalf("%+v", s.Exits)
	}
	x := s.Exits
	if !x[0].Alive || x[1].Alive || x[1].Status.Known() || x[2].Status != model.Value(9) || x[3].Alive || x[3].Status.Known() || x[4] != reported {
		t.Errorf("%+v", x)
	}
	s = &model.Snapshot{Time: at.Add(2 * exitsFor)}
	if e.add(s); len(s.Exits) != 0 {
		t.Errorf("%+v", s.Exits)
	}
}
