package api

import (
	"testing"

	"github.com/ttmon/ttmon/internal/runs"
)

// Where /proc hides processes, a run does not tell who shared its devices.
func TestRunsHidden(t *testing.T) {
	list := []runs.Run{{Neighbours: []runs.Neighbour{{UID: 1000, User: "anna"}, {UID: 1001, User: "ben", Name: "secret"}}}}
	present(list, func(uid int) bool { return uid != 1000 })
	if n := list[0].Neighbours; n[0].User != "anna" || n[1].User != "" || n[1].Name != "" || n[1].UID != -1 {
		t.Errorf("%+v", n)
	}
}
