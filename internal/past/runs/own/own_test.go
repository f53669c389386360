package own

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func TestDir(t *testing.T) {
	for _, tt := range []struct {
		name, state, home string
		simulated         bool
		want              string
	}{
		{"state directory", "/s", "/h", false, "/s/ttmon/runs"},
		{"home", "", "/h", false, "/h/.local/state/ttmon/runs"},
		{"simulated", "", "/h", true, "/h/.local/state/ttmon/runs-simulated"},
		{"a relative path does not count", "s", "/h", false, "/h/.local/state/ttmon/runs"},
		{"none", "", "", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"XDG_STATE_HOME": tt.state, "HOME": tt.home}
			if got := Dir(func(name string) string { return env[name] }, tt.simulated); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// using is a snapshot, taken now, in which a process has a device open.
func using(pid int) *model.Snapshot {
	p := model.Process{PID: pid, StartTicks: uint64(pid), StartTime: time.Now(), State: model.Running, Name: model.Value("train")}
	p.Devices = []model.DeviceUse{{Device: 0}}
	return &model.Snapshot{Time: time.Now(), Assessed: true, Devices: []model.Device{{Index: 0}}, Processes: []model.Process{p}}
}

// feed passes a snapshot a second.
func feed(k *Keeper, seconds, pid int) {
	for range seconds {
		k.Observe(using(pid))
		synctest.Wait()
		time.Sleep(time.Second)
	}
}

func count(t *testing.T, dir string) int {
	t.Helper()
	a, err := Find(dir, runs.Query{})
	if err != nil {
		t.Fatal(err)
	}
	return len(a.Runs)
}

// One keeper writes at a time, and none while a ttmon-server keeps runs.
func TestOneKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "runs")
		if _, err := Find(dir, runs.Query{}); !errors.Is(err, ErrNone) {
			t.Errorf("%v", err)
		}
		var server atomic.Bool
		o := Options{Dir: dir, Interval: time.Second, Kept: func(context.Context) bool { return server.Load() }}
		first := Start(o)
		feed(first, 2, 1001)
		if n := count(t, dir); n != 1 {
			t.Fatalf("%d runs", n)
		}
		second := Start(o)
		feed(second, 12, 1002)
		if n := count(t, dir); n != 1 {
			t.Errorf("two keepers wrote: %d runs", n)
		}
		server.Store(true)
		feed(first, 12, 1001) // it notices the server, and releases the directory
		server.Store(false)
		feed(second, 12, 1002)
		if n := count(t, dir); n != 2 {
			t.Errorf("%d runs after the second keeper took over", n)
		}
		first.Close()
		second.Close()
		a, err := Find(dir, runs.Query{})
		if err != nil || len(a.Runs) != 2 || a.Runs[0].End.Kind != runs.Unseen || a.Runs[0].End.Text == "" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}
