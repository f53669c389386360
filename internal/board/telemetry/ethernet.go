package telemetry

import "github.com/ttmon/ttmon/internal/model"

// Channels of Ethernet that a chip can have.
const (
	wormholeChannels  = 16
	blackholeChannels = 14
)

// ports is the state of the Ethernet channels. UMD numbers those of Blackhole by
// counting the ports that are not fused off; the table's bits count them all.
func (d *decoder) ports(enabled model.Reading[uint32]) (list []model.EthernetPort) {
	live, ok := d.live()
	if !ok {
		return nil
	}
	n := wormholeChannels
	if d.isBlackhole() {
		n = blackholeChannels
		if !enabled.Known() {
			return nil // which channel is which cannot be told
		}
	}
	for bit := range n {
		if enabled.Known() && enabled.V&(1<<bit) == 0 {
			continue
		}
		p := model.EthernetPort{Channel: bit, Alive: model.Value(live&(1<<bit) != 0)}
		if d.isBlackhole() {
			p.Channel = len(list)
		}
		p.Up = model.Missing[bool](model.Absent, "firmware before 19.9 does not tell whether a link is up")
		if d.since(19, 9) {
			p.Up = model.Value(live&(1<<(16+bit)) != 0)
		}
		absent := "read with firmware = \"full\" only"
		p.Retrains = model.Missing[uint32](model.Absent, absent)
		p.Corrected, p.Uncorrected = model.Missing[uint64](model.Absent, absent), model.Missing[uint64](model.Absent, absent)
		list = append(list, p)
	}
	return list
}

// live is the word with a bit for each channel that is alive, and one for each
// that is up. All ones is what a Wormhole in the middle of a Galaxy says, whose 16
// links are all up; it is believed where the table has other words beside it that
// are not: a chip that is off the bus has none.
func (d *decoder) live() (word uint32, ok bool) {
	word, ok = d.words[tagEthernetLive]
	if !ok || word != AllOnes {
		return word, ok
	}
	if d.isBlackhole() { // 14 channels
		return 0, false
	}
	for tag, w := range d.words {
		if tag != tagEthernetLive && w != AllOnes && w != 0 {
			return word, true
		}
	}
	return 0, false
}
