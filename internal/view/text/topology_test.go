package text_test

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// TestMatrixOfMany: the matrix of many devices comes only where it is asked for, and
// the screen says how.
func TestMatrixOfMany(t *testing.T) {
	for _, c := range []struct {
		name    string
		devices int
		asked   bool
		want    bool
	}{
		{"few", 16, false, true}, {"many", 17, false, false}, {"many, asked for", 17, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, top := &model.Snapshot{}, &model.Topology{}
			for i := range c.devices {
				s.Devices = append(s.Devices, model.Device{Index: i})
				top.Devices = append(top.Devices, i)
				row := make([]model.Distance, c.devices)
				for j := range row {
					row[j] = model.HostBridge
				}
				top.PCIe = append(top.PCIe, row)
			}
			out := string(text.AppendTopology(nil, s, top, c.asked, text.Options{}))
			if got := strings.Contains(out, " PHB"); got != c.want || strings.Contains(out, "ttmon topo --matrix") == c.want {
				t.Errorf("a matrix: %v, want %v:\n%s", got, c.want, out)
			}
		})
	}
}
