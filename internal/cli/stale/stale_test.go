package stale

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/shm"
)

// TestMerge: what a ttmond may look into and we may not comes from it; what we
// see ourselves stays ours, so that it can be removed.
func TestMerge(t *testing.T) {
	ghost := []model.StaleSlot{{PID: 7, Name: "python"}}
	region := new(shm.Region)
	list := merge([]Region{
		{model.Leftover{Region: "mine", StaleSlots: ghost}, region},
		{model.Leftover{Region: "denied", Denied: true}, region},
		{model.Leftover{Region: "denied, and clean", Denied: true}, region},
		{model.Leftover{Region: "unseen", Unseen: ghost}, region},
	}, []model.Leftover{
		{Region: "mine", StaleSlots: ghost},
		{Region: "denied", StaleSlots: ghost},
		{Region: "unseen", StaleSlots: ghost},
		{Region: "in a container", StaleSlots: ghost},
	})
	var got []string
	for _, f := range list {
		got = append(got, fmt.Sprintf("%s ours=%v denied=%v ghosts=%d unseen=%d", f.Region, f.region != nil, f.Denied, len(f.StaleSlots), len(f.Unseen)))
	}
	want := []string{
		"mine ours=true denied=false ghosts=1 unseen=0",
		"denied ours=false denied=false ghosts=1 unseen=0",
		"unseen ours=true denied=false ghosts=1 unseen=0",
		"in a container ours=false denied=false ghosts=1 unseen=0",
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}
