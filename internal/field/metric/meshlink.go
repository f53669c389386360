package metric

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// MeshLink is a field of an Ethernet link between chips.
type MeshLink = Field[*mesh.Link]

// MeshLinks is the table of what is shown about an Ethernet link: its ends, its state, and
// what its ends have counted since the chips' reset.
func MeshLinks() []MeshLink {
	of := func(get func(*mesh.Link) Value) func(*model.Snapshot, *mesh.Link) Value {
		return func(_ *model.Snapshot, l *mesh.Link) Value { return get(l) }
	}
	codewords := func(r model.Reading[uint64], l *mesh.Link) Value {
		v := num(r)
		v.Bound = l.CodewordBound
		return v
	}
	return []MeshLink{
		{Name: "from", Head: "From", Width: 7, Rank: 1, Help: "chip at one end", Get: of(func(l *mesh.Link) Value { return str(words.Place(l.From)) })},
		{Name: "from_channel", Kind: Gauge, Head: "Ch", Width: 3, Rank: 1, Help: "channel at that end", Get: of(func(l *mesh.Link) Value { return count(l.A) })},
		{Name: "to", Head: "To", Width: 7, Rank: 1, Help: "chip at the other end", Get: of(func(l *mesh.Link) Value {
			if l.Outside {
				return str("outside")
			}
			return str(words.Place(l.To))
		})},
		{Name: "to_channel", Kind: Gauge, Head: "Ch", Width: 3, Rank: 1, Help: "channel at the other end", Get: of(func(l *mesh.Link) Value {
			switch {
			case !l.Outside:
				return count(l.B)
			case l.Remote.Known():
				return count(l.Remote.Channel)
			}
			return Value{None: true}
		})},
		{Name: "state", Head: "State", Width: 9, Rank: 1, Help: "whether it is up, as the firmware reports it", Get: of(linkState)},
		{Name: "retrains", Kind: Counter, Head: "Retrains", Width: 8, Rank: 1, Help: "how often it has trained again", Get: of(func(l *mesh.Link) Value {
			v := num(l.Retrains)
			if words.LinkTrouble(&l.Channel) != "" {
				v.Level = model.Warning
			}
			return v
		})},
		{Name: "corrected", Kind: Counter, Head: "Corrected", Width: 12, Rank: 2, Help: "codewords with errors that were corrected", Get: of(func(l *mesh.Link) Value { return codewords(l.Corrected, l) })},
		{Name: "uncorrected", Kind: Counter, Head: "Uncorrected", Width: 12, Rank: 1, Help: "codewords with errors that were not", Get: of(func(l *mesh.Link) Value { return codewords(l.Uncorrected, l) })},
		{Name: "from_to", Kind: Gauge, As: Rate, Head: "From→To", Width: words.RateWidth, Rank: 4, Sparse: true, Help: "traffic from the first end", Get: of(func(l *mesh.Link) Value { return num(l.AToB) })},
		{Name: "to_from", Kind: Gauge, As: Rate, Head: "To→From", Width: words.RateWidth, Rank: 4, Sparse: true, Help: "traffic to the first end", Get: of(func(l *mesh.Link) Value { return num(l.BToA) })},
		{Name: "chip", Head: "Chip", Rank: 3, Sparse: true, Help: "id of a chip of another host", Get: of(func(l *mesh.Link) Value {
			if !l.Remote.Known() {
				return Value{None: true}
			}
			return str(strconv.FormatUint(l.Remote.Chip, 10))
		})},
		{Name: "before", Head: "Before", Width: 8, Rank: 1, Sparse: true, Help: "what it was before the last reset of its chips", Get: of(func(l *mesh.Link) Value {
			if !l.LostInReset {
				return Value{None: true}
			}
			return Value{Status: model.Known, Text: "up before the reset", Level: model.Critical}
		})},
	}
}

func linkState(l *mesh.Link) Value {
	switch {
	case !l.Up.Known():
		return Value{Status: l.Up.Status, Text: "not known", Why: l.Up.Why}
	case l.Up.V:
		return str("up")
	}
	return Value{Status: model.Known, Text: "down", Level: model.Critical}
}
