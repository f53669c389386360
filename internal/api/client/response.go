package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrNotFound is the error of asking for what the daemon does not know.
var ErrNotFound = errors.New("not known to ttmond")

// ErrElsewhere is the error of asking ttmond for what ttmon-server keeps.
var ErrElsewhere = errors.New("no ttmon-server runs here (systemctl start ttmon-server)")

// Limits that no answer of ttmond comes near.
const (
	maxBody    = 256 << 20
	maxHeaders = 100
)

// response is an answer in HTTP/1.1.
type response struct {
	status int
	body   []byte
	last   bool // the server closes the connection after it
}

// head is the status line and headers of a response, with how its body is framed.
type head struct {
	status  int
	last    bool
	length  int // -1: not told
	chunked bool
}

// readHead reads up to the body.
func readHead(in *bufio.Reader) (h head, err error) {
	line, err := readLine(in)
	if err != nil {
		return h, err
	}
	proto, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(proto, "HTTP/1.") || status < 100 || status > 999 {
		return h, fmt.Errorf("the answer begins with %q, which is not HTTP", clip(line))
	}
	h = head{status: status, last: proto == "HTTP/1.0", length: -1}
	for n := 0; ; n++ {
		line, err := readLine(in)
		if err != nil {
			return h, err
		}
		if line == "" {
			return h, nil
		}
		if n == maxHeaders {
			return h, errors.New("the answer has too many headers")
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(key) {
		case "content-length":
			if h.length, err = strconv.Atoi(value); err != nil || h.length < 0 || h.length > maxBody {
				return h, fmt.Errorf("the answer has the length %q", clip(value))
			}
		case "transfer-encoding":
			h.chunked = strings.EqualFold(value, "chunked")
		case "connection":
			h.last = h.last || strings.EqualFold(value, "close")
		}
	}
}

// readResponse reads one answer and not a byte more.
func readResponse(in *bufio.Reader) (r response, err error) {
	h, err := readHead(in)
	if err != nil {
		return response{}, err
	}
	r = response{status: h.status, last: h.last}
	switch {
	case h.chunked:
		r.body, err = readChunks(in)
	case h.length >= 0:
		r.body = make([]byte, h.length)
		_, err = io.ReadFull(in, r.body)
	default:
		r.last = true
		r.body, err = io.ReadAll(io.LimitReader(in, maxBody))
	}
	return r, err
}

// readChunks reads a body that comes in pieces.
func readChunks(in *bufio.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(&pieces{in: in}, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errors.New("the answer is too long")
	}
	return body, err
}

// pieces is a body that comes in pieces, each with its length before it.
type pieces struct {
	in   *bufio.Reader
	left int // of the piece that is being read
	over bool
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.left == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n, err := p.in.Read(b[:min(len(b), p.left)])
	p.left -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && p.left == 0 {
		err = p.end()
	}
	return n, err
}

// next begins the next piece; io.EOF if there is none.
func (p *pieces) next() error {
	if p.over {
		return io.EOF
	}
	line, err := readLine(p.in)
	if err != nil {
		return unexpected(err)
	}
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
	if err != nil {
		return fmt.Errorf("the answer has a piece of length %q", clip(line))
	}
	if p.left = int(n); n > 0 {
		return nil
	}
	for p.over = true; line != ""; { // trailers
		if line, err = readLine(p.in); err != nil {
			return unexpected(err)
		}
	}
	return io.EOF
}

func (p *pieces) end() error {
	line, err := readLine(p.in)
	if err != nil || line != "" {
		return fmt.Errorf("a piece of the answer ends with %q: %w", clip(line), errors.Join(unexpected(err), io.ErrUnexpectedEOF))
	}
	return nil
}

// unexpected is an end in the middle.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readLine reads a line without its end. The buffer bounds its length.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.New("the answer has a line without end")
	}
	if err != nil {
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	return strings.TrimRight(string(line), "\r\n"), nil
}

func clip(s string) string { return s[:min(len(s), 40)] }
