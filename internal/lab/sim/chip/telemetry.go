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

// restOfTable are the words that stand still, and those that the driver has no
// file for. Which of them a chip has is in published.
func (c *Chip) restOfTable(tag Tag) uint32 {
	wormhole := c.spec.Arch == model.Wormhole
	hot, busy := uint32(max(c.state.temp-7, 0)), uint32(0)
	if c.load > 0 {
		busy = 1
	}
	switch tag {
	case Bundle:
		b := c.firmware.bundle()
		return uint32(b.Major)<<24 | uint32(b.Minor)<<16 | uint32(b.Patch)<<8 | uint32(b.RC)
	case M3App:
		if wormhole {
			return 5<<24 | 12<<16
		}
		return 25 << 16 // 0.25.0.0
	case M3Boot:
		if wormhole {
			return 129<<24 | 2<<16
		}
	case ARCFW:
		return 2<<24 | 38<<16
	case EthFW:
		return 7<<16 | 2<<12
	case TTFlash:
		return 3<<24 | 6<<16 | 1<<8
	case memoryFW:
		return 2<<16 | 11
	case regulatorTemp:
		return uint32(int32((c.state.temp + 6) * 65536))
	case boardTemp:
		return uint32(int32((c.ambient + 8 + c.state.watts/20) * 65536))
	case memoryTemp, memoryTemp + 1, memoryTemp + 2, memoryTemp + 3:
		return hot | (hot+2)<<8 | hot<<16 | (hot+1)<<24
	case hottestMemory:
		return hot + 2
	case shutdownLimit:
		return uint32(c.spec.LimitC) + 20
	case boardPowerLimit:
		return uint32(c.boardLimit())
	case boardPower:
		return uint32(1.18*c.state.watts + 14)
	case fanDuty:
		return uint32(min(c.state.rpm/45, 100))
	case refreshMS:
		return uint32(step.Milliseconds())
	case location:
		return 1
	case ethernetLive:
		alive := c.ports()
		return alive | c.linksUp&alive<<16
	case enabledEthernet:
		return c.ports()
	case enabledMemory:
		return 1<<c.modules() - 1
	case enabledL2CPU:
		return 0xF
	case tensixRows:
		return 1<<(c.cores()/8) - 1
	case tensixColumns:
		return 1<<(c.cores()/10) - 1
	case memoryStatus:
		return c.memoryStatus()
	case memorySpeed:
		if wormhole {
			return 14_000
		}
		return 16_000
	case l2cpuClock, l2cpuClock + 1, l2cpuClock + 2, l2cpuClock + 3:
		return 800
	case maxClock:
		return c.spec.FMax
	case clockFloor:
		return busy<<16 | c.spec.FMin + busy*(c.spec.FMax-c.spec.FMin)
	case clockCeiling:
		return c.limiter()<<16 | max(c.clock(), c.spec.FMin)
	case enabledFloors:
		return 3
	case enabledCeilings:
		return 0x7FF
	case clockReason: // 0: at the floor, idle
		return busy<<16 | busy*c.limiter()
	}
	return 0
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

// memoryStatus is the word of trained memory.
func (c *Chip) memoryStatus() (status uint32) {
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
