package firmware

import (
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// facts are what decides on a sample of one chip.
type facts struct {
	Seen
	now       time.Time
	driver    kmd.Version // zero: not known
	superuser bool
	full      bool
	grace     time.Duration
}

// Seen is a chip as a snapshot shows it.
type Seen struct {
	Device  *model.Device
	Holders Holders
}

// Holders are the processes that have a chip open, our readers aside.
type Holders struct {
	Any     bool // there is one
	Unknown bool // there may be one that cannot be seen
	old     bool // one may use windows without asking the driver
	metal   bool // a live one runs a release of tt-metal that is known
}

// Add adds a process that has the chip open.
func (h *Holders) Add(p *model.Process) {
	h.Any = true
	release, known := p.Release.Get()
	asks := known && asksForWindows(release)
	h.old = h.old || !asks
	h.metal = h.metal || asks && p.State == model.Running && p.Condition != model.Stopped && p.Condition != model.Zombie
}

// firstAsking is the first release of tt-metal whose programs ask the driver for
// every window. UMD learned it in steps up to November 2025.
var firstAsking = [2]int{0, 66}

// asksForWindows reports whether programs of a release ask the driver for every
// window.
func asksForWindows(release string) bool {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (major > firstAsking[0] || major == firstAsking[0] && minor >= firstAsking[1])
}

var (
	v132 = kmd.Version{Major: 1, Minor: 32}
	v260 = kmd.Version{Major: 2, Minor: 6}
	v290 = kmd.Version{Major: 2, Minor: 9}
)

// way is how a chip can be read now, or why not.
func (c *chip) way(f *facts) (model.TelemetryWay, model.TelemetryCause) {
	d := f.Device
	switch {
	case d.Arch != model.Wormhole && d.Arch != model.Blackhole:
		return "", model.ArchUnknown
	case f.driver == (kmd.Version{}):
		return "", model.DriverUnknown
	case f.driver.Less(v132):
		return "", model.DriverTooOld
	case d.State != model.StateOK || d.StateReason.Cause == model.HeartbeatUnseen:
		return "", model.DeviceNotOK
	case f.now.Before(c.backOff):
		return "", model.BackingOff
	case d.Arch == model.Wormhole && f.superuser && !c.noResource:
		return model.ByResource, ""
	}
	return model.ByNode, c.nodeRefusal(f)
}

// nodeRefusal is why a chip's node is not to be opened now.
func (c *chip) nodeRefusal(f *facts) model.TelemetryCause {
	wormhole := f.Device.Arch == model.Wormhole
	switch {
	case !wormhole && f.driver == v260:
		return model.CloseSendsMessage
	case f.Holders.Unknown:
		return model.HoldersUnknown
	case f.Holders.old:
		return model.OldWindowUser
	case wormhole && !f.driver.Less(v290) && !f.Holders.Any && f.now.Sub(c.emptySince) <= f.grace+time.Second:
		return model.PowerDownPending
	}
	return ""
}

// tiles reports whether tiles other than the management core's may be read: a
// live program of tt-metal keeps their clocks on.
func (c *chip) tiles(f *facts) bool {
	return f.full && f.Holders.metal && !c.silent && c.nodeRefusal(f) == ""
}
