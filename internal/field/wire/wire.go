// Package wire is the JSON contract ttmon.snapshot/1: how a model.Snapshot is
// written for scripts (ttmon smi --json), for the daemon's clients and for the
// web page, and how a client reads it back.
//
// The rules of the contract:
//
//   - Numbers are numbers, in the SI or binary unit that ends the name.
//   - Unknown is null. Next to it, the object's "missing" has an entry with the
//     reason: "fan_rpm": "absent: the driver offers no fan on wormhole". Names of
//     nested fields are dotted ("pcie.gen"). Only a memory figure that no source
//     accounts for is null without an entry: there "tracking" says why.
//   - A memory figure is the best number there is and, next to it, its bound:
//     "used_bytes" and "used_bound", which is "exact", "at_least" (a process or
//     something is not in it) or "unsure" (it may be too high or too low). Why is
//     told by "doubts": each has a kind for scripts, a sentence for people, and data.
//     Both are null only where nothing is known.
//   - "nominal" lists the fields whose value comes from the board catalogue and
//     not from the chip.
//   - Times are RFC 3339, UTC, with milliseconds.
//   - Fields are only added. A change of meaning makes ttmon.snapshot/2.
//
// The contract is written down once, in fields.go, as a walk over the model;
// the encoder and the decoder are two ways of taking that walk, so they cannot
// disagree. docs/snapshot.schema.json is generated from the same walk.
package wire

import (
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// Schema names the contract.
const Schema = "ttmon.snapshot/1"

// Append appends the snapshot to dst as JSON on one line, without a newline.
func Append(dst []byte, s *model.Snapshot) []byte {
	e := encoder{buf: slices.Grow(dst, usualBytes(s))}
	snapshot(&e, s)
	return e.buf
}

// usualBytes is about how long the JSON of a snapshot is. A buffer that grows on
// the way to it is copied over and over, each time to memory that is not there
// yet: with 32 devices that took a sixth of all pages of ttmon smi.
func usualBytes(s *model.Snapshot) int {
	return 2<<10 + len(s.Devices)*5<<10 + len(s.Processes)*2<<10
}

// AppendIndented is Append for people: one field a line.
func AppendIndented(dst []byte, s *model.Snapshot) []byte {
	e := encoder{buf: dst, indent: true}
	snapshot(&e, s)
	return e.buf
}

// Decode reads a snapshot back. Fields it does not know are passed over, those
// that are not there are absent: a client and a daemon of different age still
// understand each other.
func Decode(data []byte) (*model.Snapshot, error) { return new(Decoder).Decode(data) }

// Decoder decodes one snapshot after the other, in the same memory. The zero
// Decoder is ready.
type Decoder struct {
	nodes   []node
	strings interned
}

// Decode is as the function. The snapshot has nothing of the decoder's but strings,
// nor of data.
func (o *Decoder) Decode(data []byte) (*model.Snapshot, error) {
	s := new(model.Snapshot)
	return s, o.walk(data, func(a archive) { snapshot(a, s) })
}

// Processes reads only the processes of a snapshot. With 32 devices that costs a
// third of Decode, for those who go through an hour of snapshots.
func (o *Decoder) Processes(data []byte) (list []model.Process, err error) {
	return list, o.walk(data, func(a archive) {
		a.begin()
		items(a, "processes", &list, process)
		a.close()
	})
}

// walk takes a walk over the contract through data.
func (o *Decoder) walk(data []byte, f func(archive)) error {
	if cap(o.nodes) > len(data)+1024 {
		o.nodes = nil // one large snapshot must not stay
	}
	t, err := parse(data, o.nodes)
	if err != nil {
		return fmt.Errorf("reading a snapshot: %w", err)
	}
	o.nodes = t.nodes
	d := decoder{tree: t, strings: &o.strings}
	if f(&d); d.err != nil {
		return fmt.Errorf("reading a snapshot: %w", d.err)
	}
	return nil
}
