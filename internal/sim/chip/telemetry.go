package chip

import (
	"math/bits"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

// Tags that the driver has no file for.
const (
	refreshMS       Tag = 5
	shutdownLimit   Tag = 10
	regulatorTemp   Tag = 12
	boardTemp       Tag = 13
	l2cpuClock      Tag = 17
	ethernetLive    Tag = 21
	memoryStatus    Tag = 22
	memorySpeed     Tag = 23
	memoryFW        Tag = 25
	fanDuty         Tag = 31
	tensixColumns   Tag = 34
	enabledEthernet Tag = 35
	enabledMemory   Tag = 36
	enabledL2CPU    Tag = 37
	memoryTemp      Tag = 42
	corrected       Tag = 46
	uncorrected     Tag = 50
	hottestMemory   Tag = 51
	location        Tag = 52
	boardPowerLimit Tag = 53
	boardPower      Tag = 54
	tensixRows      Tag = 59
	maxClock        Tag = 63
	clockFloor      Tag = 65
	clockCeiling    Tag = 66
	enabledFloors   Tag = 67
	enabledCeilings Tag = 68
	clockReason     Tag = 69
	hostClockCap    Tag = 70
	throttleStarts  Tag = 76
	throttleTime    Tag = 77
)

// firstHidden is the first firmware with a tag that the driver does not read.
func firstHidden(arch model.Arch, tag Tag) (since board.Bundle, ok bool) {
	wormhole := arch == model.Wormhole
	if wormhole && tag == FanRPM {
		return since, false
	}
	switch tag {
	case refreshMS, ethernetLive, memoryStatus, memorySpeed, location, boardPowerLimit, boardPower, enabledEthernet, enabledMemory:
		return since, true
	case regulatorTemp, boardTemp, tensixRows:
		return since, wormhole
	case shutdownLimit, maxClock:
		return board.Bundle{Major: 18, Minor: 8}, true
	case clockFloor, clockCeiling, enabledFloors, enabledCeilings:
		return board.Bundle{Major: 19, Minor: 5}, !wormhole
	case clockReason, hostClockCap:
		return board.Bundle{Major: 19, Minor: 7}, !wormhole
	case throttleStarts, throttleTime:
		return board.Bundle{Major: 19, Minor: 14}, !wormhole
	case memoryFW, fanDuty, tensixColumns, enabledL2CPU, uncorrected, hottestMemory:
		return since, !wormhole
	}
	inFour := func(first Tag) bool { return tag >= first && tag < first+4 }
	return since, !wormhole && (inFour(l2cpuClock) || inFour(memoryTemp) || inFour(corrected))
}

// hidden is a word that the driver has no file for.
func (c *Chip) hidden(tag Tag) (word uint32, ok bool) {
	if c.spec.Arch == model.Wormhole {
		switch tag {
		case regulatorTemp:
			return uint32(int32((c.state.temp + 6) * 65536)), true
		case boardTemp:
			return uint32(int32((c.ambient + 8 + c.state.watts/20) * 65536)), true
		case tensixRows:
			return 1<<(c.cores()/8) - 1, true
		}
	}
	switch tag {
	case refreshMS:
		return uint32(step.Milliseconds()), true
	case shutdownLimit:
		return uint32(c.spec.LimitC) + 20, true
	case ethernetLive:
		alive := c.ports()
		return alive | c.linksUp&alive<<16, true
	case memoryStatus:
		return c.memoryWords(tag), true
	case memorySpeed:
		return c.memoryWords(tag), true
	case location:
		return 1, true
	case boardPowerLimit:
		return uint32(c.boardLimit()), true
	case boardPower:
		return uint32(1.18*c.state.watts + 14), true
	case enabledEthernet:
		return c.ports(), true
	case enabledMemory:
		return 1<<c.modules() - 1, true
	case maxClock:
		return c.spec.FMax, true
	}
	return c.hiddenBlackhole(tag)
}

func (c *Chip) hiddenBlackhole(tag Tag) (word uint32, ok bool) {
	hot := uint32(max(c.state.temp-7, 0))
	busy := uint32(0)
	if c.load > 0 {
		busy = 1
	}
	switch tag {
	case memoryFW:
		return 2<<16 | 11, true
	case fanDuty:
		return uint32(min(c.state.rpm/45, 100)), true
	case tensixColumns:
		return 1<<(c.cores()/10) - 1, true
	case enabledL2CPU:
		return 0xF, true
	case uncorrected, hostClockCap, throttleTime, throttleStarts:
		return 0, true
	case hottestMemory:
		return hot + 2, true
	case clockFloor:
		return busy<<16 | c.spec.FMin + busy*(c.spec.FMax-c.spec.FMin), true
	case clockCeiling:
		return c.limiter()<<16 | max(c.clock(), c.spec.FMin), true
	case enabledFloors:
		return 3, true
	case enabledCeilings:
		return 0x7FF, true
	case clockReason:
		if busy == 0 {
			return 0, true // at the floor, idle
		}
		return 1<<16 | c.limiter(), true
	}
	switch {
	case tag >= l2cpuClock && tag < l2cpuClock+4:
		return 800, true
	case tag >= memoryTemp && tag < memoryTemp+4:
		return hot | (hot+2)<<8 | hot<<16 | (hot+1)<<24, true
	case tag >= corrected && tag < corrected+4:
		return 0, true
	}
	return 0, false
}

// limiter is the arbiter that limits the clock: heat, or none but the chip's
// highest clock.
func (c *Chip) limiter() uint32 {
	if c.state.temp > c.spec.LimitC {
		return 4
	}
	return 0
}

func (c *Chip) board() board.Board {
	b, _ := board.ByCard(c.spec.Card)
	return b
}

func (c *Chip) cores() int { return c.board().Cores.At(c.firmware.bundle().String()).V }

func (c *Chip) boardLimit() float64 {
	if w := c.board().BoardPowerLimit.At(c.firmware.bundle().String()); w.Known() {
		return w.V
	}
	return c.spec.LimitW * 2
}

// modules is how many GDDR channels the chip has.
func (c *Chip) modules() int {
	if c.spec.Arch == model.Wormhole {
		return 6
	}
	return max(c.board().Banks, 1)
}

// memoryWords are the words of trained memory.
func (c *Chip) memoryWords(tag Tag) uint32 {
	if tag == memorySpeed && c.spec.Arch == model.Wormhole {
		return 14_000
	}
	if tag == memorySpeed {
		return 16_000
	}
	status := uint32(0)
	for i := range c.modules() {
		status |= 1 << (2 * i)
	}
	if c.spec.Arch == model.Blackhole {
		status |= status << 16 // their self-tests are over
	}
	return status
}

// ports is the mask of Ethernet channels that are not fused off.
func (c *Chip) ports() uint32 {
	n := c.board().EthPorts
	if n == board.UnknownPorts {
		n = 12
	}
	return 1<<n - 1
}

// SetLinks says which Ethernet channels have a link, by mask, as cables and boards
// have it. Links that were taken down by hand stay down.
func (c *Chip) SetLinks(mask uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links = mask
	c.linksUp = c.links &^ c.linksCut
}

// CutLink takes an Ethernet link down, or lets it come up again.
func (c *Chip) CutLink(channel int, cut bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if channel < 0 || channel >= 32 || c.ports()&(1<<channel) == 0 {
		return false
	}
	if !cut && c.linksCut&(1<<channel) != 0 {
		c.linkCounts[channel].Retrains++ // it comes up by training again
	}
	c.linksCut &^= 1 << channel
	if cut {
		c.linksCut |= 1 << channel
	}
	c.linksUp = c.links &^ c.linksCut
	return true
}

// LinkCounts is what an Ethernet core has counted since the chip's reset.
type LinkCounts struct {
	Retrains               uint32
	Corrected, Uncorrected uint64 // codewords
}

// Retrain lets an Ethernet link train again, after codewords that could not be
// corrected.
func (c *Chip) Retrain(channel int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if channel < 0 || channel >= 32 || c.ports()&(1<<channel) == 0 {
		return false
	}
	n := &c.linkCounts[channel]
	n.Retrains, n.Corrected, n.Uncorrected = n.Retrains+1, n.Corrected+1000, n.Uncorrected+3
	return true
}

// Ethernet calls a function for each Ethernet channel that is not fused off.
func (c *Chip) Ethernet(each func(channel int, up bool, n LinkCounts)) {
	c.mu.Lock()
	ports, up, counts := c.ports(), c.linksUp, c.linkCounts
	c.mu.Unlock()
	for channel := range 32 {
		if bit := uint32(1) << channel; ports&bit != 0 {
			each(channel, up&bit != 0, counts[channel])
		}
	}
}

// LinksUp counts the Ethernet links that are up.
func (c *Chip) LinksUp() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bits.OnesCount32(c.linksUp)
}
