package facts

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// What one snapshot saw of a device is not nothing: it is not known. What has a page of
// its own is named by its path.
func TestDeviceSeenOnce(t *testing.T) {
	r := &runs.Run{
		Devices:    []runs.Device{{BusID: "0000:01:00.0", Power: &runs.Stat{Max: 71}, PCIe: &runs.PCIe{Bound: "exact"}}},
		Failures:   &runs.Failures{Count: 1, ID: "f12"},
		Neighbours: []runs.Neighbour{{ID: 7}},
	}
	links, said := map[string]string{}, map[string]string{}
	for _, p := range Run(r, time.Time{}, time.UTC).Parts {
		for _, x := range p.Pairs {
			links[x.Name] = x.Value.Link
		}
		if p.Table == nil {
			continue
		}
		for _, x := range p.Table.Rows {
			links[p.Title] = x.Cells[0].Link
			if p.Title == "Devices" {
				for i, c := range p.Table.Columns {
					said[c.Head] = x.Cells[i].Text
				}
			}
		}
	}
	if said["Energy"] != "–" || said["PCIe to"] != "–" || said["from"] != "–" || said["max"] != "71 W" {
		t.Errorf("%v", said)
	}
	if links["Devices"] != "/device/0000:01:00.0" || links["Allocations"] != "/failures/f12" || links["Who shared its devices"] != "/runs/r7" {
		t.Errorf("%v", links)
	}
}
