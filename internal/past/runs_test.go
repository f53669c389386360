package past

import (
	"testing"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/node/api"
)

// Where /proc hides processes, a run does not tell who shared its devices.
func TestRunsHidden(t *testing.T) {
	list := []runs.Run{{Neighbours: []runs.Neighbour{{UID: 1000, User: "anna"}, {UID: 1001, User: "ben", Name: "secret"}}}}
	present(list, func(uid int) bool { return uid != 1000 })
	if n := list[0].Neighbours; n[0].User != "anna" || n[1].User != "" || n[1].Name != "" || n[1].UID != -1 {
		t.Errorf("%+v", n)
	}
}

// TestSearchFindsWhatIsShown: a search for what a viewer may not see of a run does not
// find the run.
func TestSearchFindsWhatIsShown(t *testing.T) {
	run := runs.Run{Who: runs.Who{UID: 1000, Name: "train", Command: "train --key=secret", Job: &runs.Job{Kind: runs.JobSlurm, Name: "secret"}}}
	for name, c := range map[string]struct {
		v             api.Viewpoint
		command, text bool
	}{
		"the owner":    {api.Viewpoint{Level: 0, UID: 1000, Own: true}, true, true},
		"another user": {api.Viewpoint{Level: 0, UID: 2000, Own: true}, true, true}, // the command has it
		"over TCP":     {api.Viewpoint{Level: 0, UID: -1, Own: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for q, want := range map[*runs.Query]bool{
				{Command: run.Command}: c.command, {Text: "secret"}: c.text, {Text: "train"}: true,
			} {
				q.Show = func(run *runs.Run) { ofRun(c.v, run) }
				if got := q.Matches(&run); got != want {
					t.Errorf("%q%q: found: %t", q.Command, q.Text, got)
				}
			}
		})
	}
}
