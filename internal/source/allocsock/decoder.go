package allocsock

import (
	"github.com/ttmon/ttmon/internal/book/ledger"
)

// ending says what follows the last byte that the decoder was given.
type ending int

const (
	more    ending = iota // the read filled the buffer: there is more to come at once
	drained               // nothing was left in the socket
	settled               // nothing has come for settleTime since
	eof                   // nothing will ever come
)

// mode is what the decoder expects next.
type mode uint8

const (
	fresh   mode = iota // the first byte of a connection
	start               // a message of unknown size, or the end of lost ones
	filler              // zeros that end a message whose size is not known yet
	locked              // messages of a known size
	records             // messages of instrumented_helpers.hpp
	text                // lines
	lost                // the next valid header
)

// request is something that the caller must do before it decodes on.
type request struct {
	kind   requestKind
	device int32
	size   int // of the reply
}

type requestKind uint8

const (
	noRequest     requestKind = iota
	flush                     // the batch of events is full
	askQuery                  // reply with one frame
	askDeviceInfo             // reply with one frame
	askStats                  // reply with a record per device, then end
	askDump                   // reply with text, then end
	askAll                    // reply with text that an empty line ends
	askHTTP                   // a web client on the wrong socket
	askUnknown                // unknown text
	dumpRemaining             // no reply: into the log
	dumpKernels               // no reply: into the log
	askReading                // continue when classify has an answer
)

// batchLen is how many events a decoder collects at most. The caller checks the
// time between batches: an event can take 10 µs if its sender is malicious.
const batchLen = 128

// maxLine bounds a text request.
const maxLine = 256

// decoder turns the bytes of one connection into events and requests. It
// keeps no bytes: what it does not consume is given to it again, with more
// behind it.
type decoder struct {
	mode          mode
	size          int     // of the messages, while locked; of the part consumed, in filler
	guessed       bool    // the size was inferred from what a waiting client had sent
	reading       reading // of buffer types 2 and 3
	peer          int32   // pid that the kernel says wrote this; 0 if it does not know
	sentPID       int32   // first pid that a message carried
	blankAnswered bool    // a lone line break has been answered, though not consumed

	// events are those decoded and not yet applied. The slice is the caller's,
	// which applies them after every call.
	events []ledger.Event
	// classify says which list an unclear buffer type is from; unknown: not
	// yet. counting reports whether the client numbers its buffers instead of
	// giving addresses.
	classify func(counting bool) reading

	rejected, skipped uint64 // malformed messages and bytes, since last counted
}

// sanitize makes sure that an imported state is valid.
func (d *decoder) sanitize() {
	switch {
	case d.mode == locked && isVersion(d.size), d.mode == filler && d.size >= headerLen && d.size < size144:
	case d.mode == locked, d.mode == filler, d.mode > lost:
		d.mode, d.size = start, 0
	}
}

// decode consumes n bytes of b and adds events. It stops at a request, which
// the caller answers after applying the events, and then calls again. wait
// means that the rest may be a message if nothing follows it: the caller calls
// again with settled.
func (d *decoder) decode(b []byte, end ending) (n int, req request, wait bool) {
	for {
		var used int
		stop := false
		switch d.mode {
		case locked:
			used, req, stop, wait = d.decodeLocked(b[n:], end)
		case filler:
			used, stop = d.skipZeros(b[n:])
		case records:
			used, req, stop = d.decodeRecords(b[n:])
		case text:
			used, req, stop = d.decodeText(b[n:], end)
		case lost:
			used, req, stop = d.search(b[n:], end)
		default:
			used, req, stop, wait = d.decodeStart(b[n:], end)
		}
		n += used
		if stop {
			return n, req, wait
		}
		if len(d.events) >= batchLen {
			return n, request{kind: flush}, false
		}
	}
}

// decodeLocked is the hot path.
func (d *decoder) decodeLocked(b []byte, end ending) (n int, req request, stop, wait bool) {
	size := d.size
	for len(b)-n >= size {
		f := b[n : n+size : n+size]
		if !framed(f) {
			d.unlock(f)
			return n, request{}, false, false
		}
		if !allZero(f[headerLen:]) {
			if k := shorter(f); k != 0 { // the sender changed to a smaller version
				f, d.mode = f[:k], start
			}
		}
		if len(f) < size128 && d.unclear(f, len(f)) {
			return n, request{kind: askReading}, true, false
		}
		n += len(f)
		if op := ops[f[0]]; op != 0 {
			d.addEvent(f, op, len(f))
		} else if req = d.parseRequest(f, len(f)); req.kind != noRequest {
			return n, req, true, false
		}
		switch {
		case d.mode != locked:
			return n, request{}, false, false
		case len(d.events) >= batchLen:
			return n, request{kind: flush}, true, false
		}
	}
	rest := b[n:]
	switch {
	case len(rest) < headerLen || !framed(rest):
		return n, request{}, true, false
	case end < settled:
		return n, request{}, true, true
	default:
		// A shorter message than before that nothing follows, or the last of a client
		// that exited while it wrote.
		d.mode = start
		return n, request{}, false, false
	}
}

// unlock leaves the locked mode at bytes that begin no message.
func (d *decoder) unlock(f []byte) {
	d.mode = start
	if f[0] == 0 && d.guessed && d.size < size144 {
		d.mode = filler // it was no complete message that we answered
	}
}

// shorter finds a message that begins inside f.
func shorter(f []byte) int {
	for _, k := range []int{size72, size112, size128} {
		if k+24 <= len(f) && f[k] != 0 && allZero(f[headerLen:k]) && framed(f[k:]) {
			return k
		}
	}
	return 0
}

// decodeStart decodes one message whose size is not known.
func (d *decoder) decodeStart(b []byte, end ending) (n int, req request, stop, wait bool) {
	if len(b) == 0 {
		return 0, request{}, true, false
	}
	if d.mode == fresh && isText(b[0]) {
		d.mode = text
		return 0, request{}, false, false
	}
	blank := d.mode == fresh && len(b) < statsRequestLen && isBlank(b)
	if blank && end >= settled {
		return d.blankLine(len(b), end)
	}
	if b[0]-1 >= msgDumpKernels {
		return 0, request{}, d.startSearch(), false
	}
	if len(b) < statsRequestLen {
		return 0, request{}, true, blank && !d.blankAnswered
	}
	if len(b) == statsRequestLen && end >= drained && b[0] == msgFree && allZero(b[1:]) {
		return statsRequestLen, request{kind: askStats}, true, false
	}
	switch d.isRecord(b, end) {
	case yes:
		d.mode = records
		return 0, request{}, false, false
	case unclear:
		return 0, request{}, true, true
	}
	if !framed(b) {
		return 0, request{}, d.startSearch(), false
	}
	if len(b) < headerLen {
		return 0, request{}, true, false
	}
	return d.decodeFirst(b, end)
}

// decodeFirst decodes an AllocMessage and tries to learn the version.
func (d *decoder) decodeFirst(b []byte, end ending) (n int, req request, stop, wait bool) {
	size, certain := extent(b)
	if d.unclear(b, size) {
		return 0, request{kind: askReading}, true, false
	}
	isQuery := b[0] == msgQuery || b[0] == msgDeviceInfoQuery
	switch {
	case certain:
		d.lock(size, false)
	case !isQuery:
		d.mode, d.size = filler, size
	case size == len(b) && (end < drained || end < settled && !isVersion(size) && size != size120):
		return 0, request{}, true, true // in the middle of something
	case isVersion(size):
		d.lock(size, true)
	default: // the wrong size, or something behind it that is no message
		d.mode, d.size = filler, size
	}
	f := b[:size]
	if op := ops[f[0]]; op != 0 {
		d.addEvent(f, op, size)
		return size, request{}, false, false
	}
	req = d.parseRequest(f, version(size))
	return size, req, req.kind != noRequest, false
}

// extent is how far a message reaches: up to the first byte behind its header
// that is not zero. It is certain if something follows where a version ends,
// or if no version is longer.
func extent(b []byte) (size int, certain bool) {
	limit := min(len(b), size144)
	size = headerLen
	for size < limit && b[size] == 0 {
		size++
	}
	return size, size == size144 || size < limit && isVersion(size)
}

func isVersion(size int) bool {
	return size == size72 || size == size112 || size == size128 || size == size144
}

// version is the largest version that is not longer than size.
func version(size int) int {
	switch {
	case size >= size144:
		return size144
	case size >= size128:
		return size128
	case size >= size112:
		return size112
	default:
		return size72
	}
}

func (d *decoder) lock(size int, guessed bool) {
	d.mode, d.size, d.guessed = locked, size, guessed
}

// skipZeros skips the zeros that end a message, and derives the version from
// where they end.
func (d *decoder) skipZeros(b []byte) (n int, stop bool) {
	for n < len(b) && b[n] == 0 && d.size < size144 {
		n++
		d.size++
	}
	switch {
	case d.size == size144:
		d.lock(size144, false)
	case n == len(b):
		return n, true
	case !isVersion(d.size):
		d.mode = start
	case len(b)-n < 24:
		return n, true
	case framed(b[n:]):
		d.lock(d.size, false)
	default:
		d.mode = start
	}
	return n, false
}

// addEvent adds the event of an AllocMessage.
func (d *decoder) addEvent(f []byte, op ledger.Op, size int) {
	if d.sentPID == 0 {
		d.sentPID = framePID(f)
	}
	// In place, field by field: copying a composed event takes longer than all the
	// rest.
	d.events = append(d.events, ledger.Event{})
	e := &d.events[len(d.events)-1]
	e.ID, e.Size, e.Device, e.Op = frameID(f), le64(f[8:]), frameDevice(f), op
	if op == ledger.Alloc {
		e.Pool = d.pool(f[16], size)
	}
}

// parseRequest turns a message that is not an event into a request.
func (d *decoder) parseRequest(f []byte, size int) request {
	switch f[0] {
	case msgQuery:
		return request{askQuery, frameDevice(f), size}
	case msgDeviceInfoQuery:
		return request{askDeviceInfo, frameDevice(f), size}
	case msgDumpRemaining:
		return request{kind: dumpRemaining}
	case msgDumpKernels:
		return request{kind: dumpKernels}
	default: // a reply, which only a server sends
		d.rejected++
		return request{}
	}
}
