package faults_test

import (
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/lab/e2e/faults"
	"github.com/ttmon/ttmon/internal/lab/sim/control"
	"github.com/ttmon/ttmon/internal/model"
)

// all are the faults of a host whose bus ids do not matter.
func all() []faults.Fault { return faults.All(make([]string, 18)) }

// TestEveryVerb: whatever the simulator can do is played, or is no fault.
func TestEveryVerb(t *testing.T) {
	played := map[string]bool{}
	list := all()
	for i := range list {
		for _, v := range list[i].Verbs() {
			played[v] = true
		}
	}
	not := faults.NotFaults()
	for _, v := range control.Verbs() {
		if (not[v.Name] != "") == played[v.Name] {
			t.Errorf("ttmon-sim ctl %s: played %v, no fault %q", v.Name, played[v.Name], not[v.Name])
		}
		delete(not, v.Name)
	}
	if len(not) > 0 {
		t.Errorf("there are no verbs %v", not)
	}
}

// TestEveryState: every state that a device can be in is the one of some fault,
// and each fault that is played beside others has a device of its own.
func TestEveryState(t *testing.T) {
	list := all()
	for _, k := range assess.States() {
		if k != model.ConditionOK && !slices.ContainsFunc(list, func(f faults.Fault) bool { return f.What == words.Kind(k) }) {
			t.Errorf("no fault makes a device %s", k)
		}
	}
	seen := map[int]string{}
	for _, f := range list {
		if other, taken := seen[f.Device]; taken {
			t.Errorf("%s and %s share device %d", f.Name, other, f.Device)
		}
		seen[f.Device] = f.Name
	}
}
