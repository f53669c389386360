package allocsock

import "github.com/ttmon/ttmon/internal/book/ledger"

// answer is yes, no, or not known yet.
type answer int

const (
	no answer = iota
	yes
	unclear
)

// isRecord distinguishes a record of instrumented_helpers.hpp from an
// AllocMessage about a circular buffer or a kernel: by the pid, which is at
// another offset, or else by what follows.
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
