package chip

// SetLoad gives the chip work: 0 is idle, 1 all it can do.
func (c *Chip) SetLoad(load float64) {
	c.lock()
	defer c.mu.Unlock()
	c.load = min(max(load, 0), 1)
}

// SetAmbient sets the temperature of the air around the chip, in °C.
func (c *Chip) SetAmbient(celsius float64) {
	c.lock()
	defer c.mu.Unlock()
	c.ambient = celsius
}

// Settle makes the chip look as if its load had lasted for hours.
func (c *Chip) Settle() {
	c.lock()
	defer c.mu.Unlock()
	c.state = c.settled()
}

// Load is what SetLoad was last told.
func (c *Chip) Load() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.load
}

// SetTraffic fixes the bytes per second over PCIe whatever the load; negative
// numbers give it back to the load.
func (c *Chip) SetTraffic(toDevice, fromDevice float64) {
	now := c.lock()
	defer c.mu.Unlock()
	c.rates = nil
	if toDevice >= 0 && fromDevice >= 0 {
		c.rates = &[2]float64{toDevice, fromDevice}
	}
	c.rebase(now, c.traffic(c.state.load))
}

// rebase moves what was counted so far into the counters, up to now and not
// only to the last step, and continues at the given bytes per second.
func (c *Chip) rebase(now Now, rates [2]float64) {
	for i := range c.counters {
		for noc := range c.counters[i] {
			c.counters[i][noc] = c.count(Counter(i), noc, now)
		}
	}
	c.state.bytes = rates
	for way, rate := range rates {
		c.moved[way] = -rate * c.sinceStep(now) // the rest of the step counts from now on
	}
}

// SetCounters sets one PCIe counter of one network, or all with which or noc
// negative, to value.
func (c *Chip) SetCounters(which Counter, noc int, value uint32) {
	now := c.lock()
	defer c.mu.Unlock()
	c.rebase(now, c.state.bytes)
	for i := range c.counters {
		for n := range c.counters[i] {
			if (which < 0 || which == Counter(i)) && (noc < 0 || noc == n) {
				c.counters[i][n] = value
			}
		}
	}
}

// Reset starts counters and heartbeat again, as a chip reset does, and wakes
// hung firmware.
func (c *Chip) Reset() {
	now := c.lock()
	defer c.mu.Unlock()
	c.rebase(now, c.state.bytes)
	c.counters = [NumCounters][NOCs]uint32{}
	c.boot, c.beats, c.hung = now, 0, nil
}

// Hang stops the firmware: heartbeat and telemetry keep their values.
func (c *Chip) Hang() {
	now := c.lock()
	defer c.mu.Unlock()
	if c.hung != nil {
		return
	}
	words := make(map[Tag]uint32)
	for _, tag := range lively {
		words[tag] = c.word(tag, now)
	}
	c.hung, c.stopped = words, now
}

// Unhang lets the firmware go on where it stopped.
func (c *Chip) Unhang() {
	now := c.lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		return
	}
	c.boot.Beat += now.Beat - c.stopped.Beat
	c.hung = nil
}

// SetWord fixes a word of the telemetry table, publishing it if need be.
func (c *Chip) SetWord(tag Tag, word uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw[tag] = word
}

// ClearWord gives a word back to the firmware; the zero Tag, all words.
func (c *Chip) ClearWord(tag Tag) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if tag == 0 {
		clear(c.raw)
	}
	delete(c.raw, tag)
}

// SetFirmware replaces the firmware. It takes effect on what is published at
// once; files appear when the driver next binds.
func (c *Chip) SetFirmware(f Firmware) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.firmware = f
}

// Hung reports whether the firmware is stopped.
func (c *Chip) Hung() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hung != nil
}
