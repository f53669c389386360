package unixhttp

import (
	"bufio"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/lazy"
)

// Writer makes the answer to a request.
type Writer interface {
	// Header are the fields that WriteHeader, or the first Write, sends.
	Header() Header
	WriteHeader(status int)
	Write([]byte) (int, error)
	// Flush sends what was written so far.
	Flush() error
	// SetWriteDeadline is when the client must have taken what is written; the
	// zero time: never.
	SetWriteDeadline(time.Time) error
}

// unsent is how much of a body may wait for its end: a short answer has a length
// instead of chunks, and is one packet.
const unsent = 4 << 10

var (
	errLength = errors.New("more was written than the Content-Length says")
	errBody   = errors.New("this answer has no body")
)

// response is a Writer on a connection.
type response struct {
	bw       *bufio.Writer
	deadline func(time.Time) error
	header   Header
	status   int // 0: WriteHeader was not called
	body     []byte
	sent     bool  // the head
	chunked  bool  // the body goes out in chunks
	left     int64 // of the declared length; -1: none was declared
	noBody   bool  // HEAD
	old      bool  // HTTP/1.0 has no chunks
	close    bool  // the connection ends with this answer
	err      error
}

func (w *response) Header() Header { return w.header }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *response) SetWriteDeadline(t time.Time) error { return w.deadline(t) }

func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(StatusOK)
	if w.noBody {
		return 0, errBody
	}
	if !w.sent && len(w.body)+len(p) <= unsent {
		w.body = append(w.body, p...)
		return len(p), nil
	}
	w.sendHead(-1)
	w.sendBody(p)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *response) Flush() error {
	w.WriteHeader(StatusOK)
	w.sendHead(-1)
	if w.err == nil {
		w.err = w.bw.Flush()
	}
	return w.err
}

// finish ends the answer.
func (w *response) finish() error {
	w.WriteHeader(StatusOK)
	w.sendHead(int64(len(w.body)))
	if w.chunked {
		w.put("0\r\n\r\n")
	}
	if w.left > 0 && !w.noBody {
		w.close = true // the client waits for more than there is
	}
	if w.err == nil {
		w.err = w.bw.Flush()
	}
	return w.err
}

// sendHead writes the head, and what of the body has waited for it. length is
// that of the whole body; -1: it is not known.
func (w *response) sendHead(length int64) {
	if w.sent {
		return
	}
	w.sent, w.left = true, -1
	if text := w.header.Get("Content-Length"); text != "" {
		w.left, _ = strconv.ParseInt(text, 10, 64)
	} else if length >= 0 && !w.noBody {
		w.left = length
		w.header.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if w.left < 0 && !w.noBody {
		if w.chunked = !w.old; w.chunked {
			w.header.Set("Transfer-Encoding", "chunked")
		} else {
			w.close = true
		}
	}
	if w.close {
		w.header.Set("Connection", "close")
	}
	w.put(statusLine(w.status))
	w.putHeader()
	body := w.body
	w.body = nil
	w.sendBody(body)
}

func (w *response) putHeader() {
	names := make([]string, 0, len(w.header))
	for name := range w.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range w.header[name] {
			w.put(name)
			w.put(": ")
			w.put(lineBreaks.Get().Replace(value))
			w.put("\r\n")
		}
	}
	w.put("\r\n")
}

// lineBreaks prevents a value from being read as further fields.
var lineBreaks = lazy.Value[*strings.Replacer]{New: func() *strings.Replacer { return strings.NewReplacer("\r", " ", "\n", " ") }}

func (w *response) sendBody(p []byte) {
	switch {
	case len(p) == 0 || w.noBody:
		return
	case w.chunked:
		w.put(strconv.FormatInt(int64(len(p)), 16))
		w.put("\r\n")
		w.write(p)
		w.put("\r\n")
	case w.left >= 0 && int64(len(p)) > w.left:
		w.err = errLength
	default:
		if w.left >= 0 {
			w.left -= int64(len(p))
		}
		w.write(p)
	}
}

func (w *response) put(s string) {
	if w.err == nil {
		_, w.err = w.bw.WriteString(s)
	}
}

func (w *response) write(p []byte) {
	if w.err == nil {
		_, w.err = w.bw.Write(p)
	}
}
