package collect

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestAssignPods(t *testing.T) {
	claim := func(pod string, names ...string) model.PodClaim {
		return model.PodClaim{Namespace: "ml", Pod: pod, Container: "c", Names: names}
	}
	process := func(uid string, devices ...int) model.Process {
		p := model.Process{State: model.Running, Container: model.Container{Pod: uid}}
		for _, d := range devices {
			p.Devices = append(p.Devices, model.DeviceUse{Device: d})
		}
		return p
	}
	named := process("u4", 0)
	named.Container.PodName = "by its logs"
	s := &model.Snapshot{
		Devices: []model.Device{
			{Index: 0, BusID: "0000:01:00.0"}, {Index: 1, BusID: "0000:02:00.0"}, {Index: 2, BusID: "0000:03:00.0"}, {Index: 12, BusID: "0000:04:00.0"},
		},
		Processes: []model.Process{process("u1", 0, 1), process("u2", 2), process("", 0), named, process("u5", 12)},
	}
	assignPods(s, []model.PodClaim{
		claim("llama", "0000:01:00.0"), claim("llama", "tenstorrent.com/card=1"),
		claim("a", "tt-2"), claim("b", "/dev/tenstorrent/2"), claim("other", "gpu-7"),
	})
	for i, want := range []string{"llama", "", "", "by its logs", ""} {
		if got := s.Processes[i].Container.PodName; got != want {
			t.Errorf("process %d is in the pod %q, want %q", i, got, want)
		}
	}
	for i, want := range []int{1, 1, 2, 0} {
		if got := len(s.Devices[i].Pods); got != want {
			t.Errorf("device %d was given to %d, want %d: %+v", s.Devices[i].Index, got, want, s.Devices[i].Pods)
		}
	}
}
