package allocsock

import "bytes"

func isBlank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

func isText(c byte) bool { return c >= ' ' && c < 0x7f || c == '\r' }

// blankLine serves `echo "" | nc -U`: some versions of nc shut down their side
// then, others wait for us to shut down ours. A line break is also the type of
// KERNEL_LOAD, so it is consumed only if nothing can follow.
func (d *decoder) blankLine(length int, end ending) (n int, req request, stop, wait bool) {
	if end == eof {
		n = length
	}
	if d.blankAnswered {
		return n, request{}, true, false
	}
	d.blankAnswered = true
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
