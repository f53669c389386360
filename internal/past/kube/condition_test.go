package kube

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// A node has a problem when a device is hung or lost, and in no other state; the
// first of them gives the reason, all of them are in the message.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		states                  []model.State
		status, reason, message string
	}{
		{nil, "False", "DevicesWork", "0 devices, none hung or lost"},
		{[]model.State{model.StateOK}, "False", "DevicesWork", "1 device, not hung or lost"},
		{[]model.State{model.StateResetting, model.StateUnknown}, "False", "DevicesWork", "2 devices, none hung or lost"},
		{[]model.State{model.StateOK, model.StateHung}, "True", "DeviceHung", "device 1 (b): hung → tt-smi -r /dev/tenstorrent/1"},
		{[]model.State{model.StateLost, model.StateHung}, "True", "DeviceLost", "device 0 (a): lost → check power and seating, reboot; see dmesg; device 1 (b): hung → tt-smi -r /dev/tenstorrent/1"},
	} {
		t.Run(fmt.Sprint(c.states), func(t *testing.T) {
			s := &model.Snapshot{}
			for i, state := range c.states {
				s.Devices = append(s.Devices, model.Device{Index: i, BusID: string(rune('a' + i)), State: state})
			}
			if got, want := Of(s), (Condition{Type: "TenstorrentProblem", Status: c.status, Reason: c.reason, Message: c.message}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
