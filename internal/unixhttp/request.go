package unixhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// Bounds of a request.
const (
	maxHead   = 16 << 10
	maxFields = 64
	maxBody   = 1 << 20
)

// Header are the fields of a request or an answer, by canonical name.
type Header = textproto.MIMEHeader

// Request is what a client asks.
type Request struct {
	Method string
	URL    *url.URL // path and query
	Header Header
	Body   io.Reader // of Length bytes
	Length int64
	// InClear tells that the request crossed a network unencrypted.
	InClear bool

	ctx    context.Context
	values map[string]string // of the wildcards in the route
	old    bool              // HTTP/1.0
	close  bool              // the client wants no further request
}

// NewRequest returns a request that did not come over a connection of a Server.
func NewRequest(ctx context.Context, method string, u *url.URL) *Request {
	return &Request{Method: method, URL: u, Header: Header{}, Body: strings.NewReader(""), ctx: ctx}
}

// Context ends when the client leaves, the answer is complete, or the server stops.
func (r *Request) Context() context.Context { return r.ctx }

// WithContext returns a copy of r with another context.
func (r *Request) WithContext(ctx context.Context) *Request {
	c := *r
	c.ctx = ctx
	return &c
}

// PathValue is what stands for {name} in the path.
func (r *Request) PathValue(name string) string { return r.values[name] }

// refusal is an error that is sent to the client, with its status.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// errTooLarge is what a connection's reader says once a head exceeds its bound.
var errTooLarge = errors.New("request head too large")

// readRequest reads the head of a request. Its body is still to be read from br.
func readRequest(br *bufio.Reader) (*Request, error) {
	line, err := readLine(br)
	if err != nil {
		return nil, err
	}
	method, rest, ok1 := strings.Cut(line, " ")
	target, proto, ok2 := strings.Cut(rest, " ")
	if !ok1 || !ok2 || !validToken(method) {
		return nil, refuse(StatusBadRequest, "malformed request line")
	}
	r := &Request{Method: method}
	switch proto {
	case "HTTP/1.1":
	case "HTTP/1.0":
		r.old = true
	default:
		return nil, refuse(StatusHTTPVersion, "only HTTP/1.0 and HTTP/1.1 are supported")
	}
	if r.URL, err = url.ParseRequestURI(target); err != nil || !strings.HasPrefix(r.URL.Path, "/") {
		return nil, refuse(StatusBadRequest, "malformed request target")
	}
	if r.Header, err = readHeader(br); err != nil {
		return nil, err
	}
	if r.Length, err = bodyLength(r.Header); err != nil {
		return nil, err
	}
	r.Body = io.LimitReader(br, r.Length)
	r.close = r.old || hasToken(r.Header.Values("Connection"), "close")
	return r, nil
}

// readLine reads a line without its end.
func readLine(br *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return "", err
		}
		line = line[:len(line)-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		return string(line), nil
	}
}

func readHeader(br *bufio.Reader) (Header, error) {
	h := Header{}
	for fields := 0; ; fields++ {
		line, err := readLine(br)
		if err != nil {
			return nil, err
		}
		if line == "" {
			return h, nil
		}
		if fields == maxFields {
			return nil, refuse(StatusHeaderTooLarge, "more than %d header fields", maxFields)
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !validToken(name) || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil, refuse(StatusBadRequest, "malformed header field")
		}
		h.Add(name, value)
	}
}

// bodyLength is the length that a header declares. Chunked bodies are refused:
// no client of ours sends one, and two ways to tell a length are one too many.
func bodyLength(h Header) (int64, error) {
	if _, ok := h["Transfer-Encoding"]; ok {
		return 0, refuse(StatusLengthRequired, "send the body with a Content-Length")
	}
	list := h.Values("Content-Length")
	if len(list) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseUint(list[0], 10, 63)
	switch {
	case err != nil || len(list) > 1:
		return 0, refuse(StatusBadRequest, "malformed Content-Length")
	case n > maxBody:
		return 0, refuse(StatusTooLarge, "a body of %d bytes exceeds %d", n, maxBody)
	}
	return int64(n), nil
}

// validToken reports whether s is a token of RFC 9110, as methods and names of
// fields are.
func validToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// hasToken reports whether one of the values, which are lists, has a token.
func hasToken(values []string, token string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.Trim(part, " \t"), token) {
				return true
			}
		}
	}
	return false
}
