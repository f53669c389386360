package text

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// AppendList appends one line per device: index, name, and every id by which
// -i would find it.
func AppendList(dst []byte, s *model.Snapshot, o Options) []byte {
	p, a := newPrinter(dst, o), assess.Of(s)
	for i := range s.Devices {
		d := &s.Devices[i]
		name := string(d.Arch)
		if b, ok := d.Board.Get(); ok {
			name = words.Escape(b) + " " + name
		}
		line := "Device " + strconv.Itoa(d.Index) + ": " + name +
			" (UUID: " + words.Foreign(d.ASICID) + ", serial: " + words.Foreign(d.Serial) + ", bus: " + d.BusID
		if d.Tray > 0 {
			line += ", tray " + strconv.Itoa(d.Tray) + " slot " + strconv.Itoa(d.Slot)
		}
		line += ")"
		if is := a.Device(d.Index); is.Kind != model.ConditionOK {
			line += " " + words.Kind(is.Kind)
		}
		if s.Simulated {
			line += " simulated"
		}
		p.Line(line, cells.Text)
	}
	return p.Buf
}
