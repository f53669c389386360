package allocsock

import (
	"bytes"

	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// ending tells the decoder what is behind the last byte it was given.
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
	lost                // the next header that makes sense
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
	askHTTP                   // a web client that is wrong here
	askUnknown                // text that means nothing
	dumpRemaining             // no reply: into the log
	dumpKernels               // no reply: into the log
)

// reading is which of the two lists a buffer type is taken from.
type reading uint8

const (
	readingUnknown reading = iota
	readingMetal           // tt-metal's own enumeration
	readingPython          // that of the Python client and the documents
)

// batchLen is how many events a decoder collects at most.
const batchLen = 4096

// maxLine bounds a text request.
const maxLine = 256

// decoder turns the bytes of one connection into events and requests. It
// keeps no bytes: what it does not consume is given to it again, with more
// behind it.
type decoder struct {
	mode    mode
	size    int     // of the messages, while locked; of the part consumed, in filler
	guessed bool    // the size was taken from what a waiting client had sent
	reading reading // of buffer types 2 and 3
	peer    int32   // pid that the kernel says; 0 if it does not know
	sentPID int32   // first pid that a message carried
	asked   bool    // a lone line break has been answered, though not consumed

	// events are those decoded and not yet booked. The slice is the caller's,
	// which takes them after every call.
	events []ledger.Event
	// classify says which list an unclear buffer type is from. counting tells
	// whether the client numbers its buffers instead of giving addresses.
	classify func(counting bool) reading

	rejected, skipped uint64 // messages and bytes that made no sense, since last taken
}

// decode consumes n bytes of b and adds events. It stops at a request, which
// the caller serves after booking the events, and then calls again. wait says
// that what is left may mean something if nothing follows it: the caller
// comes back with settled.
func (d *decoder) decode(b []byte, end ending) (n int, req request, wait bool) {
	for {
		var used int
		stop := false
		switch d.mode {
		case locked:
			used, req, stop, wait = d.decodeLocked(b[n:], end)
		case filler:
			used, stop = d.swallow(b[n:])
		case records:
			used, req, stop = d.decodeRecords(b[n:])
		case text:
			used, req, stop = d.decodeText(b[n:], end)
		case lost:
			used, stop = d.search(b[n:], end)
		default:
			used, req, stop, wait = d.decodeStart(b[n:], end)
		}
		n += used
		if stop {
			return n, req, wait
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
		n += len(f)
		if op := ops[f[0]]; op != 0 {
			d.add(f, op, len(f))
		} else if req = d.special(f, len(f)); req.kind != noRequest {
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
		// A shorter message than before that nothing follows, or the last of
		// a client that died while it wrote.
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

// shorter looks for a message that begins inside f.
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
	blank := d.mode == fresh && len(b) < statsRequestLen && len(bytes.TrimSpace(b)) == 0
	if blank && end >= settled {
		return d.blankLine(len(b), end)
	}
	if b[0]-1 >= msgDumpKernels {
		return 0, request{}, d.lose(), false
	}
	if len(b) < statsRequestLen {
		return 0, request{}, true, blank && !d.asked
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
		return 0, request{}, d.lose(), false
	}
	if len(b) < headerLen {
		return 0, request{}, true, false
	}
	return d.decodeFirst(b, end)
}

// decodeFirst decodes an AllocMessage and tries to learn the version.
func (d *decoder) decodeFirst(b []byte, end ending) (n int, req request, stop, wait bool) {
	size, certain := extent(b)
	asks := b[0] == msgQuery || b[0] == msgDeviceInfoQuery
	switch {
	case certain:
		d.lock(size, false)
	case !asks:
		d.mode, d.size = filler, size
	case end < drained, end < settled && !isVersion(size) && size != size120:
		return 0, request{}, true, true // in the middle of something
	case isVersion(size):
		d.lock(size, true)
	default:
		d.mode, d.size = filler, size
	}
	f := b[:size]
	if op := ops[f[0]]; op != 0 {
		d.add(f, op, size)
		return size, request{}, false, false
	}
	req = d.special(f, version(size))
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

// swallow skips the zeros that end a message, and learns the version from
// where they end.
func (d *decoder) swallow(b []byte) (n int, stop bool) {
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

// lose begins the search for the next header.
func (d *decoder) lose() (stop bool) {
	d.mode = lost
	d.rejected++
	return false
}

// search skips to the next header that makes sense. The first byte does not
// count: it begins what was rejected.
func (d *decoder) search(b []byte, end ending) (n int, stop bool) {
	for i := 1; i+headerLen <= len(b); i++ {
		switch {
		case b[i]-1 >= msgDumpKernels:
		case plausible(b[i:]) && d.knows(framePID(b[i:])) && allZero(b[i+headerLen:min(i+size72, len(b))]):
			d.mode = start
		case cbFramed(b[i:]) && d.matches(int32(le32(b[i+24:]))):
			d.mode = records
		}
		if d.mode != lost {
			d.skipped += uint64(i)
			return i, false
		}
	}
	n = max(len(b)-headerLen, 0)
	if end == eof {
		n = len(b)
	}
	d.skipped += uint64(n)
	return n, true
}

// knows tells whether a message with this pid may be the client's: 0 in
// questions; otherwise its pid, if we know that.
func (d *decoder) knows(pid int32) bool {
	return pid == 0 || d.matches(pid) || d.peer == 0 && d.sentPID == 0
}

// matches tells whether pid is what the client is or calls itself.
func (d *decoder) matches(pid int32) bool {
	return pid != 0 && (pid == d.peer || pid == d.sentPID)
}

// add collects the event of an AllocMessage.
func (d *decoder) add(f []byte, op ledger.Op, size int) {
	if d.sentPID == 0 {
		d.sentPID = framePID(f)
	}
	e := ledger.Event{ID: frameID(f), Size: le64(f[8:]), Device: frameDevice(f), Op: op}
	if op == ledger.Alloc {
		e.Pool = d.pool(f[16], size, e.ID)
	}
	d.events = append(d.events, e)
}

// badPool is what the ledger counts as such.
const badPool = 255

func (d *decoder) pool(bufferType byte, size int, id uint64) uint8 {
	switch bufferType {
	case 0:
		return uint8(model.DRAM)
	case 1:
		return uint8(model.L1)
	case 4:
		d.reading = readingMetal
		return uint8(model.Trace)
	case 2, 3:
	default:
		return badPool
	}
	if size >= size128 {
		d.reading = readingMetal
	}
	if d.reading == readingUnknown {
		d.reading = d.classify(id%32 != 0)
	}
	if d.reading == readingMetal {
		return [...]uint8{2: uint8(ledger.Host), 3: uint8(model.L1Small)}[bufferType]
	}
	return [...]uint8{2: uint8(model.L1Small), 3: uint8(model.Trace)}[bufferType]
}

// special turns a message that is no event into a request.
func (d *decoder) special(f []byte, size int) request {
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

// answer is yes, no, or not to be told yet.
type answer int

const (
	no answer = iota
	yes
	unclear
)

// isRecord tells a record of instrumented_helpers.hpp from an AllocMessage
// about a circular buffer or a kernel: by the pid, which stands elsewhere, or
// else by what follows.
func (d *decoder) isRecord(b []byte, end ending) answer {
	if b[0] < msgCBAlloc || b[0] > msgKernelUnload {
		return no
	}
	if len(b) < cbRecordLen {
		return unclear
	}
	asMessage, asRecord := framed(b), cbFramed(b)
	switch {
	case !asRecord:
		return no
	case !asMessage:
		return yes
	}
	messagePID, recordPID := d.matches(framePID(b)), d.matches(int32(le32(b[24:])))
	switch {
	case messagePID != recordPID:
		return map[bool]answer{true: yes, false: no}[recordPID]
	case len(b) == cbRecordLen && end >= drained:
		return yes
	case len(b) < size72 && end < settled:
		return unclear
	case allZero(b[headerLen:max(headerLen, min(size72, len(b)))]):
		return no
	default:
		return yes
	}
}

// decodeRecords decodes messages of instrumented_helpers.hpp.
func (d *decoder) decodeRecords(b []byte) (n int, req request, stop bool) {
	for len(b)-n >= cbRecordLen {
		f := b[n : n+cbRecordLen]
		if !cbFramed(f) {
			d.mode = start
			return n, request{}, false
		}
		if d.sentPID == 0 {
			d.sentPID = int32(le32(f[24:]))
		}
		n += cbRecordLen
		d.events = append(d.events, ledger.Event{
			ID: le64(f[16:]), Size: le64(f[8:]), Device: frameDevice(f), Op: ops[f[0]],
		})
		if len(d.events) >= batchLen {
			return n, request{kind: flush}, true
		}
	}
	return n, request{}, true
}

func isText(c byte) bool { return c >= ' ' && c < 0x7f || c == '\r' }

// blankLine serves `echo "" | nc -U`: some versions of nc end their side
// then, others wait for us to end ours. A line break is also the type of
// KERNEL_LOAD, so it is consumed only if nothing can follow.
func (d *decoder) blankLine(length int, end ending) (n int, req request, stop, wait bool) {
	if end == eof {
		n = length
	}
	if d.asked {
		return n, request{}, true, false
	}
	d.asked = true
	return n, request{kind: askDump}, true, false
}

// decodeText decodes one line.
func (d *decoder) decodeText(b []byte, end ending) (n int, req request, stop bool) {
	i := bytes.IndexByte(b, '\n')
	switch {
	case i >= 0:
		n = i + 1
	case len(b) >= maxLine:
		d.skipped += uint64(len(b))
		return len(b), request{}, true
	case end < eof || len(b) == 0:
		return 0, request{}, true
	default:
		i, n = len(b), len(b)
	}
	line := bytes.TrimSpace(b[:i])
	switch {
	case len(line) == 0:
		req.kind = askDump
	case string(line) == "QUERY_ALL":
		req.kind = askAll
	case bytes.HasPrefix(line, []byte("GET ")), bytes.HasPrefix(line, []byte("POST ")), bytes.HasPrefix(line, []byte("HEAD ")):
		req.kind = askHTTP
	default:
		req.kind = askUnknown
	}
	return n, req, true
}
