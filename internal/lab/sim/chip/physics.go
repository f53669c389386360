package chip

import (
	"math"
	"time"
)

// step is how often the firmware refreshes its table; the physics move in
// steps of it, so that a chip with a given seed and history reads the same
// however often it is asked.
const step = 100 * time.Millisecond

// Time constants of the first-order lags.
var (
	powerLag = 1 - math.Exp(-step.Seconds()/0.4)
	heatLag  = 1 - math.Exp(-step.Seconds()/20)
	fanLag   = 1 - math.Exp(-step.Seconds()/3)
)

// state is what moves.
type state struct {
	load  float64 // 0…1, wave and noise included
	watts float64
	temp  float64 // °C
	rpm   float64
	bytes [2]float64 // bytes per second: to the device, from the device
}

// settled is the state a chip reaches under a steady load.
func (c *Chip) settled() state {
	s := state{load: c.load, watts: c.spec.IdleW + c.load*(c.spec.BusyW-c.spec.IdleW)}
	s.temp = c.heat(s.watts)
	s.rpm = fanCurve(s.temp)
	s.bytes = c.traffic(s.load)
	return s
}

// roomC is the temperature of the air that the coolers are made for.
const roomC = 27

// heat is the temperature that a power leads to: a cooler that keeps the
// chip 12 °C below its limit at full load.
func (c *Chip) heat(watts float64) float64 {
	rise := (c.spec.LimitC - 12 - roomC) / c.spec.BusyW
	return c.ambient + 6*c.unit(saltAmbient) + rise*watts
}

func fanCurve(temp float64) float64 { return 1150 + 42*min(max(temp-35, 0), 55) }

// traffic is the bytes per second of a load, both ways.
func (c *Chip) traffic(load float64) [2]float64 {
	if c.rates != nil {
		return *c.rates
	}
	return [2]float64{1.4e9 * load, 0.5e9 * load}
}

// advance moves the state by one step; n is its number since the start.
func (c *Chip) advance(n int64) {
	s := &c.state
	s.load = 0
	if c.load > 0 {
		t := float64(n) * step.Seconds()
		wave := math.Sin(2*math.Pi*t/17+6*c.unit(saltPhase)) * 0.12
		s.load = min(max(c.load*(1+wave)+0.03*c.noise(n, saltLoad), 0), 1)
	}
	for i, rate := range s.bytes {
		c.moved[i] += rate * step.Seconds()
	}
	s.bytes = c.traffic(s.load)
	work := s.load * (c.spec.BusyW - c.spec.IdleW)
	if over := s.temp - c.spec.LimitC; over > 0 {
		work *= max(1-over/10, 0.3) // throttled: less clock, less power
	}
	target := c.spec.IdleW + work + 0.8*c.noise(n, saltPower)
	s.watts += (target - s.watts) * powerLag
	s.temp += (c.heat(s.watts) - s.temp) * heatLag
	s.rpm += (fanCurve(s.temp) - s.rpm) * fanLag
}

// clock is AICLK: raised while there is work, lowered while throttled.
func (c *Chip) clock() uint32 {
	if c.load <= 0 {
		return c.spec.FMin
	}
	over := max(c.state.temp-c.spec.LimitC, 0)
	f := float64(c.spec.FMax) * max(1-over/20, 0)
	return max(uint32(f), c.spec.FMin)
}

// millivolts follows the clock, with a little droop under load.
func (c *Chip) millivolts() float64 {
	if c.load <= 0 {
		return c.spec.IdleMV
	}
	return c.spec.BusyMV - 8*c.state.load
}

// Salts tell apart what is drawn from one seed.
const (
	saltAmbient = iota + 1
	saltPhase
	saltLoad
	saltPower
	saltASIC
	saltBeat
	saltCounter // up to saltCounter + NumCounters*NOCs
)

// unit is a number in 0…1 fixed for this chip.
func (c *Chip) unit(salt uint64) float64 { return float64(mix(c.seed, salt)>>11) / (1 << 53) }

// noise is a number in -1…1 fixed for this chip and step.
func (c *Chip) noise(n int64, salt uint64) float64 {
	return float64(mix(c.seed+uint64(n)*0x9E3779B97F4A7C15, salt)>>11)/(1<<52) - 1
}

// mix spreads a seed over 64 bits (the finaliser of splitmix64).
func mix(seed, salt uint64) uint64 {
	z := seed + salt*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func stepTime(n int64) time.Duration { return time.Duration(n) * step }
