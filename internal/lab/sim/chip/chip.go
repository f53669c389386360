package chip

import (
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Now is the moment of a read. The two clocks differ in a frozen host only:
// there the physics stand still while the firmware's heartbeat continues.
type Now struct {
	Physics time.Duration // since the host started
	Beat    time.Duration
}

// Identity is what makes one chip of a kind different from another.
type Identity struct {
	Serial uint64 // of the board
	ASIC   uint64
}

// Chip is one simulated chip. Its methods may be called by many at once.
type Chip struct {
	spec Spec
	id   Identity
	seed uint64
	time func() Now

	mu       sync.Mutex
	firmware Firmware
	load     float64
	ambient  float64     // °C of the air around it
	rates    *[2]float64 // bytes per second, instead of what the load gives
	state    state
	steps    int64 // of physics done
	moved    [2]float64
	counters [NumCounters][NOCs]uint32 // at moved == 0
	boot     Now                       // when the firmware started, for the heartbeat
	beats    uint32                    // heartbeat at boot
	trips    uint32
	raw      map[Tag]uint32 // words set by hand
	hung     map[Tag]uint32 // the lively words of hung firmware; nil while it runs
	stopped  Now            // when it hung

	links, linksCut, linksUp uint32 // Ethernet channels: connected, taken down by hand, up
	linkCounts               [32]LinkCounts
}

// New makes an idle chip. Its identity and the numbers it draws follow from
// seed alone; now says what time it is.
func New(spec Spec, id Identity, firmware Firmware, seed uint64, now func() Now) *Chip {
	c := &Chip{spec: spec, id: id, seed: mix(seed, 0), time: now, firmware: firmware, ambient: roomC, raw: make(map[Tag]uint32)}
	if c.id.ASIC == 0 {
		c.id.ASIC = mix(c.seed, saltASIC)
	}
	c.beats = uint32(mix(c.seed, saltBeat) % 100_000)
	for i := range c.counters {
		for noc := range c.counters[i] {
			c.counters[i][noc] = uint32(mix(c.seed, saltCounter+uint64(i*NOCs+noc)) >> 34)
		}
	}
	c.state = c.settled()
	return c
}

// Spec returns what kind of chip it is.
func (c *Chip) Spec() Spec { return c.spec }

// Identity returns its serial and ASIC id.
func (c *Chip) Identity() Identity { return c.id }

// Firmware returns what it runs.
func (c *Chip) Firmware() Firmware {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.firmware
}

// lock keeps others out of the chip until c.mu is unlocked, and brings the
// physics to now.
func (c *Chip) lock() (now Now) {
	c.mu.Lock()
	now = c.time()
	for want := int64(now.Physics / step); c.steps < want; {
		c.steps++
		c.advance(c.steps)
	}
	return now
}

// Publishes reports whether the firmware has the tag.
func (c *Chip) Publishes(tag Tag) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.publishes(tag)
}

func (c *Chip) publishes(tag Tag) bool {
	if _, ok := c.raw[tag]; ok {
		return true
	}
	return c.firmware.Publishes(c.spec, tag)
}

// Word reads a word of the telemetry table; ok is false if the firmware does
// not publish it.
func (c *Chip) Word(tag Tag) (word uint32, ok bool) {
	now := c.lock()
	defer c.mu.Unlock()
	if !c.publishes(tag) {
		return 0, false
	}
	return c.word(tag, now), true
}

// LegacyWord reads what the array before the tag table holds under the same
// name. Drivers used it on Wormhole up to 2.1 (attributes) and 2.8 (hwmon);
// it is there whatever the tag table lacks.
func (c *Chip) LegacyWord(tag Tag) uint32 {
	now := c.lock()
	defer c.mu.Unlock()
	return c.word(tag, now)
}

func (c *Chip) word(tag Tag, now Now) uint32 {
	if w, ok := c.raw[tag]; ok {
		return w
	}
	if w, ok := c.hung[tag]; ok {
		return w
	}
	switch tag {
	case BoardIDHigh:
		return uint32(c.id.Serial >> 32)
	case BoardIDLow:
		return uint32(c.id.Serial)
	case ASICIDHigh:
		return uint32(c.id.ASIC >> 32)
	case ASICIDLow:
		return uint32(c.id.ASIC)
	case VCore:
		return uint32(c.millivolts())
	case TDP:
		return uint32(c.state.watts)
	case TDC:
		return uint32(c.state.watts / c.millivolts() * 1000)
	case VDDLimits:
		return uint32(c.spec.MaxMV)<<16 | uint32(c.spec.MinMV)
	case ASICTemp:
		return uint32(int32(c.state.temp * 65536))
	case AIClk:
		return c.clock()
	case AXIClk:
		return c.spec.AXIClk
	case ARCClk:
		return c.spec.ARCClk
	case Heartbeat:
		return c.heartbeat(now)
	case FanRPM:
		return uint32(c.state.rpm)
	case TDCLimit:
		return uint32(c.spec.LimitA)
	case ThrottleLimit:
		return uint32(c.spec.LimitC)
	case TDPLimit:
		return uint32(c.spec.LimitW)
	case ThermTrips:
		return c.trips
	}
	return c.restOfTable(tag)
}

// lively are the words that move.
var lively = []Tag{VCore, TDP, TDC, ASICTemp, AIClk, Heartbeat, FanRPM, boardPower, boardTemp, regulatorTemp, hottestMemory}

// beatEvery is the time between two heartbeats.
func (c *Chip) beatEvery() time.Duration {
	if c.spec.Arch == model.Wormhole {
		return 500 * time.Millisecond
	}
	return step
}

func (c *Chip) heartbeat(now Now) uint32 {
	return c.beats + uint32((now.Beat-c.boot.Beat)/c.beatEvery())
}

// shares are how traffic to and from the device splits over the counters.
var shares = [NumCounters]struct {
	way   int // index into moved: 0 to the device, 1 from it
	share float64
}{
	HostReads:           {1, 0.04},
	HostWritesNonposted: {0, 0.01},
	HostWrites:          {0, 0.35},
	ChipWritesNonposted: {1, 0.01},
	ChipWrites:          {1, 0.95},
	ChipReads:           {0, 0.64},
}

// nocShares are how each kind splits over the two networks.
var nocShares = [NOCs]float64{0.6, 0.4}

// Count reads a PCIe counter. It counts on while the firmware is hung.
func (c *Chip) Count(which Counter, noc int) uint32 {
	now := c.lock()
	defer c.mu.Unlock()
	return c.count(which, noc, now)
}

func (c *Chip) count(which Counter, noc int, now Now) uint32 {
	s := shares[which]
	bytes := c.moved[s.way] + c.state.bytes[s.way]*c.sinceStep(now)
	words := max(bytes, 0) * s.share * nocShares[noc] / wordBytes
	return c.counters[which][noc] + uint32(uint64(words))
}

// sinceStep is the seconds since the last step of the physics.
func (c *Chip) sinceStep(now Now) float64 { return max((now.Physics - stepTime(c.steps)).Seconds(), 0) }
