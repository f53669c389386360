package lab

import "github.com/ttmon/ttmon/internal/model"

// The message queue: four words of indexes, then requests of eight words, then
// responses.
const (
	queueEntries  = 4
	requestWrite  = queueAt + 0x00
	responseRead  = queueAt + 0x04
	requestRead   = queueAt + 0x10
	responseWrite = queueAt + 0x14
	requestsAt    = queueAt + 0x20
	messageBytes  = 32
	responsesAt   = requestsAt + queueEntries*messageBytes
)

// Wormhole's mailbox, which is older than its queue.
const (
	whMailbox  = registers + 0x74
	whDoorbell = registers + 0x100
	bhDoorbell = 0x800B_0000
)

// Store is a write over the NoC. ours says that it came through the driver's
// own window, or a register that only the driver uses: then it is no event.
func (c *Chip) Store(x, y uint16, address uint64, value uint32, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ours {
		c.writes = append(c.writes, Write{x, y, address, value})
	}
	if own, ok := c.own(x, y, address); ok && !c.dead {
		c.storeOwn(own, value)
	}
}

// storeOwn is a write into the management core's address space.
func (c *Chip) storeOwn(address, value uint32) {
	c.stored[address] = value
	switch {
	case c.arch == model.Blackhole && address == bhDoorbell, c.arch == model.Wormhole && address == whDoorbell:
		c.answer()
	}
}

// answer handles the messages that were posted.
func (c *Chip) answer() {
	if c.arch == model.Wormhole {
		if m := c.stored[whMailbox]; m>>8 == 0xAA {
			c.messages = append(c.messages, m&0xFF)
			c.stored[whMailbox] = m & 0xFF
			if m&0xFF == askLegacy {
				c.stored[whArgument] = legacyAt
			}
		}
	}
	for c.stored[requestRead] != c.stored[requestWrite] {
		slot := c.stored[requestRead] % queueEntries
		c.messages = append(c.messages, c.stored[requestsAt+slot*messageBytes])
		reply := responsesAt + c.stored[responseWrite]%queueEntries*messageBytes
		for i := range uint32(messageBytes / 4) {
			c.stored[reply+4*i] = 0
		}
		c.stored[requestRead] = (c.stored[requestRead] + 1) % (2 * queueEntries)
		c.stored[responseWrite] = (c.stored[responseWrite] + 1) % (2 * queueEntries)
	}
}
