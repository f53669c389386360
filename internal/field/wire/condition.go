package wire

import (
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// conditions are what is wrong with the host, its devices and processes, the
// worst first. Each has its kind, cause and facts for scripts, and sentences
// for people. A snapshot of a ttmond that did not assess it has no such member,
// and is left to the reader.
func conditions(a archive, s *model.Snapshot) {
	if !a.maybe("conditions", s.Assessed) {
		return
	}
	if a.reads() {
		s.Assessed = true
	}
	elements(a, &s.Conditions, func(a archive, c *model.Condition) {
		a.begin()
		condition(a, s, c)
		a.close()
	})
}

func condition(a archive, s *model.Snapshot, c *model.Condition) {
	field(a, "kind", (*string)(&c.Kind))
	level := c.Level.String()
	field(a, "level", &level)
	kernelIndex(a, "device", &c.Device)
	busID(a, s, c)
	optional(a, "pid", &c.Process.PID)
	optional(a, "start_ticks", &c.Process.StartTicks)
	instant(a, "since", &c.Since)
	field(a, "older_than_since", &c.Older)
	optional(a, "cause", (*string)(&c.Cause))
	field(a, "concluded", &c.Concluded)
	items(a, "facts", &c.Facts, func(a archive, f *model.Fact) {
		field(a, "kind", (*string)(&f.Kind))
		field(a, "value", &f.Value)
		optional(a, "limit", &f.Limit)
	})
	field(a, "remedy", (*string)(&c.Remedy))
	if a.reads() {
		c.Level, _ = model.ParseLevel(level)
	}
	sentences(a, s, c)
}

// busID is the identity of the device, for those who have no list of devices.
func busID(a archive, s *model.Snapshot, c *model.Condition) {
	id := ""
	if d := s.Device(c.Device); d != nil {
		id = d.BusID
	}
	optional(a, "bus_id", &id)
}

// sentences are made from the rest, and not read back.
func sentences(a archive, s *model.Snapshot, c *model.Condition) {
	var text, facts, remedy string
	var affected []int
	if !a.reads() {
		text, facts, remedy = words.What(c), words.Facts(s, c), words.Remedy(s, c, []int{c.Device})
		for _, p := range assess.Affected(s, c) {
			affected = append(affected, p.PID)
		}
	}
	field(a, "text", &text)
	field(a, "facts_text", &facts)
	field(a, "remedy_text", &remedy)
	if a.key("affected_pids") {
		elements(a, &affected, value[int])
	}
}

// deviceCondition is the state that views show for a device: the worst of its
// conditions that is one. "state" is what the driver's files say alone.
func deviceCondition(a archive, assessed *assess.Assessment, d *model.Device) {
	kind := ""
	if !a.reads() {
		kind = string(assessed.Device(d.Index).Kind)
	}
	field(a, "condition", &kind)
}
