package node

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/node/daemon"
)

// Every setting of the file that a reload changes is said: none is passed over in
// silence. What the next program says of its configuration is compared.
func TestEveryDifferenceIsFound(t *testing.T) {
	a, b := Default(), Default()
	b.Collect.Interval = daemon.Duration{Duration: time.Hour}
	b.Uprobe.Enabled = !b.Uprobe.Enabled
	said, err := json.Marshal(b)
	b = Config{}
	if err == nil {
		err = json.Unmarshal(said, &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	daemon.EachDifference(&a, &b, func(name string, _, _ reflect.Value) { names = append(names, name) })
	want := []string{"collect.interval", "uprobe.enabled"}
	if !slices.Equal(names, want) {
		t.Errorf("differences %q, want %q", names, want)
	}
}
