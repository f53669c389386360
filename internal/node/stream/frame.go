package stream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/wire"
)

// Bounds of a frame. A snapshot of 32 boards with 2,000 processes has 2 MB.
const (
	maxHeader = 64
	maxBody   = 64 << 20
)

// ErrFrame is the error of a stream that is not one.
var ErrFrame = errors.New("not a frame of ttmond's stream")

// Append appends a frame.
func Append(dst []byte, k Kind, body []byte) []byte {
	dst = append(AppendHead(dst, k, len(body)), body...)
	return append(dst, '\n')
}

// AppendHead appends what comes before the body of a frame. A newline comes behind
// the body.
func AppendHead(dst []byte, k Kind, length int) []byte {
	dst = append(dst, k...)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(length), 10)
	return append(dst, '\n')
}

// AppendJSON appends a frame with v in it.
func AppendJSON(dst []byte, k Kind, v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return Append(dst, k, wire.Harmless(body))
}

// Reader reads frames.
type Reader struct {
	in   *bufio.Reader
	body bytes.Buffer
	last []byte // of body, what Next returned
	room int    // how long the last body was that the caller kept
}

// NewReader reads the frames of r.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, 64<<10)} }

// Keep returns the body that Next returned last. It is the caller's from now on.
func (r *Reader) Keep() []byte {
	b := r.last
	r.body, r.room = bytes.Buffer{}, len(b)
	return b
}

// Next returns the next frame. The body holds until the next call, unless it is kept.
func (r *Reader) Next() (k Kind, body []byte, err error) {
	kind, length, err := r.header()
	if err != nil {
		return "", nil, err
	}
	r.body.Reset()
	if r.body.Cap() > 4*length+1<<20 {
		r.body = bytes.Buffer{} // one large snapshot must not stay
	}
	// The length is the sender's word: memory is taken as bytes arrive, or as much at
	// once as did arrive before.
	r.body.Grow(min(length, r.room) + bytes.MinRead)
	if n, err := io.CopyN(&r.body, r.in, int64(length)+1); err != nil {
		return "", nil, fmt.Errorf("%w: it ends after %d of %d bytes: %w", ErrFrame, n, length, err)
	}
	b := r.body.Bytes()
	if b[length] != '\n' {
		return "", nil, fmt.Errorf("%w: a body of %d bytes does not end there", ErrFrame, length)
	}
	r.last = b[:length:length]
	return kind, r.last, nil
}

func (r *Reader) header() (Kind, int, error) {
	line, err := r.in.ReadSlice('\n')
	if len(line) > maxHeader || errors.Is(err, bufio.ErrBufferFull) {
		return "", 0, fmt.Errorf("%w: its header has more than %d bytes", ErrFrame, maxHeader)
	}
	if err != nil {
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return "", 0, err
	}
	kind, size, ok := strings.Cut(string(line[:len(line)-1]), " ")
	n, err := strconv.ParseUint(size, 10, 31)
	if !ok || kind == "" || err != nil || n > maxBody {
		return "", 0, fmt.Errorf("%w: header %q", ErrFrame, line)
	}
	return Kind(kind), int(n), nil
}
