package kmd

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// TestHeartbeatsOfAPredecessor: a device that hung before a takeover is hung at
// the first reading after it; one whose counter has moved meanwhile is ok.
func TestHeartbeatsOfAPredecessor(t *testing.T) {
	tr := newTree(t)
	tr.add("wh", 0, 3, "0000:41:00.0")
	before := New(tr.root())
	defer before.Close()
	read(before)
	list := before.Heartbeats()
	if len(list) != 1 || list[0].BusID != "0000:41:00.0" || list[0].Value != 12345 {
		t.Fatalf("heartbeats: %+v", list)
	}
	ago := time.Now().Add(-time.Minute)
	for name, tt := range map[string]struct {
		handed Heartbeat
		state  model.State
		cause  model.Cause
	}{
		"stopped":                {Heartbeat{Value: 12345, Moved: ago, Seen: true}, model.StateHung, model.HeartbeatStopped},
		"moved since":            {Heartbeat{Value: 12000, Moved: ago, Seen: true}, model.StateOK, ""},
		"of a clock that is off": {Heartbeat{Value: 12345, Moved: time.Now().Add(time.Hour), Seen: true}, model.StateOK, model.HeartbeatUnseen},
	} {
		t.Run(name, func(t *testing.T) {
			tt.handed.BusID = "0000:41:00.0"
			text, err := json.Marshal(tt.handed)
			if err != nil {
				t.Fatal(err)
			}
			var handed Heartbeat
			if err := json.Unmarshal(text, &handed); err != nil {
				t.Fatal(err)
			}
			r := New(tr.root())
			defer r.Close()
			r.Restore([]Heartbeat{handed})
			if d := read(r).Found[0].Device; d.State != tt.state || d.StateReason.Cause != tt.cause {
				t.Errorf("the device is %s: %+v", d.State, d.StateReason)
			}
		})
	}
}
