package podres

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/net/http2/hpack"
)

// Frames of HTTP/2 (RFC 9113), as far as one call has them.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagAck        = 0x1 // of settings and pings
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	settingPush   = 0x2
	settingWindow = 0x4

	preface  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	maxFrame = 16 << 10 // the peer may not send larger ones unless told so
	stream   = 1
	// window lets the peer send more than we take, so that it is refused rather
	// than waited for.
	window = maxAnswer + maxFrame
	// maxHeaders is more than any answer has before and after its message.
	maxHeaders = 64 << 10
)

// exchange is one request and its answer on a connection of its own. Its windows
// hold a whole answer, so they never have to be enlarged.
type exchange struct {
	in    *bufio.Reader
	out   io.Writer
	hpack *hpack.Decoder

	headers []byte // a block of header fields that is not complete
	last    bool   // it ends the stream
	body    []byte

	status, grpcStatus, grpcMessage string
}

func newExchange(c io.ReadWriter) *exchange {
	x := &exchange{in: bufio.NewReader(c), out: c}
	x.hpack = hpack.NewDecoder(4096, x.field)
	x.hpack.SetMaxStringLength(maxHeaders)
	return x
}

// field keeps what is asked of the answer. An error that comes without a message
// is in the first header, others are in the last.
func (x *exchange) field(f hpack.HeaderField) {
	switch f.Name {
	case ":status":
		x.status = f.Value
	case "grpc-status":
		x.grpcStatus = f.Value
	case "grpc-message":
		x.grpcMessage = f.Value
	}
}

// post sends a request with a body that fits a frame.
func (x *exchange) post(path string, body []byte) error {
	var fields bytes.Buffer
	e := hpack.NewEncoder(&fields)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: path},
		{Name: ":authority", Value: "kubelet"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		_ = e.WriteField(f) // a buffer takes everything
	}
	var settings []byte
	settings = binary.BigEndian.AppendUint16(settings, settingPush)
	settings = binary.BigEndian.AppendUint32(settings, 0)
	settings = binary.BigEndian.AppendUint16(settings, settingWindow)
	settings = binary.BigEndian.AppendUint32(settings, window)

	b := []byte(preface)
	b = appendFrame(b, frameSettings, 0, 0, settings)
	b = appendFrame(b, frameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, window))
	b = appendFrame(b, frameHeaders, flagEndHeaders, stream, fields.Bytes())
	b = appendFrame(b, frameData, flagEndStream, stream, body)
	_, err := x.out.Write(b)
	return err
}

func appendFrame(b []byte, kind, flags byte, id uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	b = binary.BigEndian.AppendUint32(b, id)
	return append(b, payload...)
}

// answer reads frames until the stream ends.
func (x *exchange) answer() error {
	head, payload := make([]byte, 9), make([]byte, maxFrame)
	for {
		if _, err := io.ReadFull(x.in, head); err != nil {
			return err
		}
		n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if n > maxFrame {
			return fmt.Errorf("a frame of %d bytes", n)
		}
		if _, err := io.ReadFull(x.in, payload[:n]); err != nil {
			return err
		}
		done, err := x.frame(head[3], head[4], binary.BigEndian.Uint32(head[5:])&^(1<<31), payload[:n])
		if done || err != nil {
			return err
		}
	}
}

// frame takes one frame; done: the answer is complete.
func (x *exchange) frame(kind, flags byte, id uint32, p []byte) (done bool, err error) {
	if (kind == frameContinuation) != (x.headers != nil) {
		return false, errors.New("header fields that are not continued")
	}
	switch kind {
	case frameSettings, framePing:
		if flags&flagAck == 0 {
			return false, x.acknowledge(kind, p)
		}
	case frameGoAway:
		return false, errors.New("the connection is refused (GOAWAY)")
	case frameReset:
		if id == stream && len(p) == 4 {
			return false, fmt.Errorf("the call is refused (RST_STREAM %d)", binary.BigEndian.Uint32(p))
		}
	case frameData, frameHeaders, frameContinuation:
		if id != stream {
			return false, fmt.Errorf("an answer on stream %d", id)
		}
		if kind != frameContinuation {
			x.last = flags&flagEndStream != 0
			if p, err = unpad(kind, flags, p); err != nil {
				return false, err
			}
		}
		if kind == frameData {
			return x.last, x.data(p)
		}
		return x.block(flags, p)
	}
	return false, nil // what else there is, is of no use to one call
}

// acknowledge answers settings and pings.
func (x *exchange) acknowledge(kind byte, p []byte) error {
	if kind == frameSettings {
		p = nil
	}
	_, err := x.out.Write(appendFrame(nil, kind, flagAck, 0, p))
	return err
}

// unpad takes padding and priority off a frame.
func unpad(kind, flags byte, p []byte) ([]byte, error) {
	pad := 0
	if flags&flagPadded != 0 {
		if len(p) == 0 {
			return nil, errors.New("a padded frame without a length")
		}
		pad, p = int(p[0]), p[1:]
	}
	if kind == frameHeaders && flags&flagPriority != 0 {
		if len(p) < 5 {
			return nil, errors.New("header fields without their priority")
		}
		p = p[5:]
	}
	if pad > len(p) {
		return nil, errors.New("a frame of nothing but padding")
	}
	return p[:len(p)-pad], nil
}

func (x *exchange) data(p []byte) error {
	if len(x.body)+len(p) > maxAnswer {
		return fmt.Errorf("an answer of more than %d bytes", maxAnswer)
	}
	x.body = append(x.body, p...)
	return nil
}

// block takes a piece of a block of header fields; done: it was the last.
func (x *exchange) block(flags byte, p []byte) (done bool, err error) {
	if len(x.headers)+len(p) > maxHeaders {
		return false, fmt.Errorf("more than %d bytes of header fields", maxHeaders)
	}
	x.headers = append(x.headers, p...)
	if flags&flagEndHeaders == 0 {
		if x.headers == nil {
			x.headers = []byte{}
		}
		return false, nil
	}
	block := x.headers
	x.headers = nil
	if _, err := x.hpack.Write(block); err != nil {
		return false, err
	}
	return x.last, x.hpack.Close()
}
