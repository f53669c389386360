package node

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/daemon"
)

// Every setting of the file is either changed by a reload or said to stay:
// none is passed over in silence.
func TestEveryDifferenceIsFound(t *testing.T) {
	a, b := Default(), Default()
	b.Collect.Interval = daemon.Duration{Duration: time.Hour}
	b.Uprobe.Enabled = !b.Uprobe.Enabled
	var names []string
	daemon.EachDifference(&a, &b, func(name string, _, _ reflect.Value) { names = append(names, name) })
	want := []string{"collect.interval", "uprobe.enabled"}
	if !slices.Equal(names, want) {
		t.Errorf("differences %q, want %q", names, want)
	}
}
