package api

import (
	"bytes"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// TestPublishEncoded: the JSON that a snapshot came with is what viewers who see
// everything get; others get one of their own.
func TestPublishEncoded(t *testing.T) {
	s := &model.Snapshot{Processes: []model.Process{{PID: 1, UID: model.Value(1000)}, {PID: 2, UID: model.Value(1001)}}}
	body := append(wire.Append(nil, s), ' ')
	var f Feed
	f.PublishEncoded(s, body)
	if got := f.current().encode(Viewpoint{}); !bytes.Equal(got, body) {
		t.Errorf("%s instead of %s", got, body)
	}
	own, err := wire.Decode(f.current().encode(Viewpoint{Level: 2, UID: 1001}))
	if err != nil {
		t.Fatal(err)
	}
	if len(own.Processes) != 2 || own.Processes[0].UID.Known() || !own.Processes[1].UID.Known() {
		t.Errorf("the user 1001 sees %+v", own.Processes)
	}
	f.Publish(s)
	if got := f.current().encode(Viewpoint{}); !bytes.Equal(got, wire.Append(nil, s)) {
		t.Errorf("%s is not the snapshot", got)
	}
}
