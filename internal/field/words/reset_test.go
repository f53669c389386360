package words

import (
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// TestResetUnbroken: a line that ends in half a command would reset every chip.
func TestResetUnbroken(t *testing.T) {
	text := "first stop PID 1 (a, b), then tt-smi -r /dev/tenstorrent/5; wait"
	for width := 1; width < len(text)+1; width++ {
		if lines := Wrap(text, width); !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "tt-smi -r /dev/tenstorrent/5") }) {
			t.Errorf("at %d: %q", width, lines)
		}
	}
}

func TestReset(t *testing.T) {
	process := func(pid int, name string, devices ...int) model.Process {
		p := model.Process{PID: pid, Name: model.Value(name), User: model.Value("alice")}
		for _, d := range devices {
			p.Devices = append(p.Devices, model.DeviceUse{Device: d})
		}
		return p
	}
	exited := process(8, "gone", 5)
	exited.State = model.Exited
	job := process(9, "train", 1)
	job.SystemdUnit = "ttdev-job-12.scope"
	for _, c := range []struct {
		name    string
		snap    model.Snapshot
		devices []int
		want    string
	}{
		{"free", model.Snapshot{}, []int{5}, "tt-smi -r /dev/tenstorrent/5"},
		{"two", model.Snapshot{}, []int{5, 7}, "tt-smi -r /dev/tenstorrent/5,/dev/tenstorrent/7"},
		{"held", model.Snapshot{Processes: []model.Process{process(4711, "serve", 5), process(4712, "other", 6)}}, []int{5}, "first stop PID 4711 (serve, alice), then tt-smi -r /dev/tenstorrent/5"},
		{"by two", model.Snapshot{Processes: []model.Process{process(1, "a", 5), process(2, "b", 6, 7)}}, []int{5, 7}, "first stop PID 1 (a, alice) and PID 2 (b, alice), then tt-smi -r /dev/tenstorrent/5,/dev/tenstorrent/7"},
		{
			"by many",
			model.Snapshot{Processes: []model.Process{process(1, "a", 5), process(2, "b", 5), process(3, "c", 5), process(4, "d", 5), process(5, "e", 5)}},
			[]int{5},
			"first stop PID 1 (a, alice), PID 2 (b, alice), PID 3 (c, alice) and 2 others, then tt-smi -r /dev/tenstorrent/5",
		},
		{"exited", model.Snapshot{Processes: []model.Process{exited}}, []int{5}, "tt-smi -r /dev/tenstorrent/5"},
		{"unseen", model.Snapshot{Devices: []model.Device{{Index: 5, HiddenFDs: 1}}}, []int{5}, "first stop processes that cannot be seen from here, then tt-smi -r /dev/tenstorrent/5"},
		{"a broker", model.Snapshot{Host: model.Host{Broker: "/run/tt-device-broker"}, Processes: []model.Process{process(1, "a", 5)}}, []int{5}, "left to this host's device broker (/run/tt-device-broker)"},
		{"a broker's job", model.Snapshot{Processes: []model.Process{job}}, []int{5}, "left to this host's device broker (ttdev-job-12.scope)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Reset(&c.snap, c.devices); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
