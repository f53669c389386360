package words

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// Level is how much a notice matters.
type Level = model.Level

// The levels of notices.
const (
	Critical = model.Critical
	Warning  = model.Warning
	Info     = model.Info
)

// Notice is one thing worth saying about a snapshot, as a sentence.
type Notice struct {
	Level   Level
	Code    string // stable word for the kind: "hung", "link", "stale", …
	Devices []int  // kernel indexes it is about; empty: the host
	Text    string // without the devices; safe for a terminal
}

// String is the whole sentence: "device 1: firmware heartbeat stopped 41 s ago".
func (n Notice) String() string {
	switch len(n.Devices) {
	case 0:
		return n.Text
	case 1:
		return "device " + strconv.Itoa(n.Devices[0]) + ": " + n.Text
	default:
		return "devices " + Ranges(n.Devices) + ": " + n.Text
	}
}

// Notices lists what is wrong or incomplete in a snapshot, worst first: its
// Troubles, and its Notes.
func Notices(s *model.Snapshot) []Notice {
	var all []Notice
	for _, t := range Troubles(s) {
		all = append(all, Notice{Level: t.Level, Code: string(t.Kind), Devices: t.Devices, Text: t.Sentence()})
	}
	all = append(all, Notes(s)...)
	sorted.Stable(all, func(a, b *Notice) int { return cmp.Compare(b.Level, a.Level) })
	return all
}

// Notes lists what is worth saying about a snapshot beside its Troubles, worst
// first: alerts about something else, and what the figures leave out. What is
// true of several devices in the same words is said once.
func Notes(s *model.Snapshot) []Notice {
	l := &list{snap: s, healthy: healthy(s)}
	l.alerts()
	l.conditions()
	l.host()
	for i := range s.Devices {
		l.device(&s.Devices[i])
	}
	l.mixedFirmware()
	l.staleSlots()
	l.openers()
	l.doubts()
	sorted.Stable(l.notices, func(a, b *Notice) int { return cmp.Compare(b.Level, a.Level) })
	return l.notices
}

// list collects the notices of one snapshot.
type list struct {
	snap    *model.Snapshot
	notices []Notice
	healthy string // the word for devices whose firmware may be alive
}

// healthy is "ok", which is said of no device that has another condition.
func healthy(s *model.Snapshot) string {
	a := assess.Of(s)
	if slices.ContainsFunc(s.Devices, func(d model.Device) bool {
		return d.State == model.StateOK && d.StateReason.Cause != "" && a.Device(d.Index).Kind != model.ConditionOK
	}) {
		return "alive"
	}
	return "ok"
}

// add appends a notice, or adds the device to one that says the same.
func (l *list) add(level Level, code string, device int, text string) {
	if device == model.NoDevice {
		l.notices = append(l.notices, Notice{Level: level, Code: code, Text: text})
		return
	}
	for i := range l.notices {
		n := &l.notices[i]
		if n.Code == code && n.Text == text && len(n.Devices) > 0 {
			if !slices.Contains(n.Devices, device) {
				n.Devices = append(n.Devices, device)
			}
			return
		}
	}
	l.notices = append(l.notices, Notice{Level: level, Code: code, Devices: []int{device}, Text: text})
}

// Ranges writes a list of indexes shortly: "0-3, 8".
func Ranges(list []int) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(list[i]))
		switch {
		case j == i+1:
			b.WriteString(", " + strconv.Itoa(list[j]))
		case j > i+1:
			b.WriteString("-" + strconv.Itoa(list[j]))
		}
		i = j + 1
	}
	return b.String()
}

// Count is a number of things: "1 host", "3 hosts".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// plural is Count for words that take more than an s: "1 process", "3 processes".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
