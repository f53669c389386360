package words

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// ChipNames names chips by their devices, as a snapshot has them: "device 0",
// "device 0 L"; one that it does not have, by its id.
func ChipNames(s *model.Snapshot) func(id uint64) string {
	names := map[uint64]string{}
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range d.Chips {
			if id, ok := d.Chips[j].ID.Get(); ok {
				names[id] = strings.TrimSpace(fmt.Sprintf("device %d %s", d.Index, Escape(d.Chips[j].Name)))
			}
		}
	}
	return func(id uint64) string {
		if name, ok := names[id]; ok {
			return name
		}
		return fmt.Sprintf("chip %d", id)
	}
}
