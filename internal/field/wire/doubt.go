package wire

import (
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// doubts are the reasons why figures may not be the whole truth: a kind for
// scripts, a sentence for people, and those data that the kind has.
func doubts(a archive, list *[]model.Doubt) { items(a, "doubts", list, doubt) }

func doubt(a archive, d *model.Doubt) {
	field(a, "kind", (*string)(&d.Kind))
	text := ""
	if !a.reads() {
		text = words.Doubt(*d)
	}
	field(a, "text", &text)
	rare(a, "pid", &d.PID)
	rareNumbers(a, "pids", &d.PIDs)
	rare(a, "slot_pid", &d.SlotPID)
	if a.maybe("uid", d.UID != 0 || hasUID(d.Kind)) {
		a.value(&d.UID)
	}
	if a.maybe("chip_id", d.Chip != 0) {
		a.value((*decimal)(&d.Chip))
	}
	rareNumbers(a, "devices", &d.Devices)
	rare(a, "region", &d.Region)
	rare(a, "release", &d.Release)
	rare(a, "name", &d.Name)
	rare(a, "layout_version", &d.Version)
	rare(a, "count", &d.Count)
	rare(a, "other_source", (*string)(&d.Source))
	rare(a, "basis", (*string)(&d.Basis))
	if isNew := !words.KnowsDoubt(d.Kind); isNew && a.reads() {
		d.Detail = text // all that can be said of it
	} else if !isNew {
		rare(a, "detail", &d.Detail)
	}
}

// hasUID reports whether a kind has a uid, of which 0 is one.
func hasUID(k model.DoubtKind) bool {
	switch k {
	case model.ProcessDenied, model.ShutOut, model.RegionDenied, model.ProcessesDenied, model.ProcessesHidden:
		return true
	}
	return false
}
