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

// readResponse reads one answer and not a byte more.
func readResponse(in *bufio.Reader) (response, error) {
	line, err := readLine(in)
	if err != nil {
		return response{}, err
	}
	proto, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || !strings.HasPrefix(proto, "HTTP/1.") || status < 100 || status > 999 {
		return response{}, fmt.Errorf("the answer begins with %q, which is not HTTP", clip(line))
	}
	r := response{status: status, last: proto == "HTTP/1.0"}
	length, chunked := -1, false
	for n := 0; ; n++ {
		line, err := readLine(in)
		if err != nil {
			return response{}, err
		}
		if line == "" {
			break
		}
		if n == maxHeaders {
			return response{}, errors.New("the answer has too many headers")
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(key) {
		case "content-length":
			if length, err = strconv.Atoi(value); err != nil || length < 0 || length > maxBody {
				return response{}, fmt.Errorf("the answer has the length %q", clip(value))
			}
		case "transfer-encoding":
			chunked = strings.EqualFold(value, "chunked")
		case "connection":
			r.last = r.last || strings.EqualFold(value, "close")
		}
	}
	switch {
	case chunked:
		r.body, err = readChunks(in)
	case length >= 0:
		r.body = make([]byte, length)
		_, err = io.ReadFull(in, r.body)
	default:
		r.last = true
		r.body, err = io.ReadAll(io.LimitReader(in, maxBody))
	}
	return r, err
}

// readChunks reads a body that comes in pieces, each with its length before it.
func readChunks(in *bufio.Reader) ([]byte, error) {
	var body []byte
	for {
		line, err := readLine(in)
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
		if err != nil || len(body)+int(n) > maxBody {
			return nil, fmt.Errorf("the answer has a piece of length %q", clip(line))
		}
		if n == 0 {
			for line != "" { // trailers
				if line, err = readLine(in); err != nil {
					return nil, err
				}
			}
			return body, nil
		}
		start := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(in, body[start:]); err != nil {
			return nil, err
		}
		if line, err = readLine(in); err != nil || line != "" {
			return nil, fmt.Errorf("a piece of the answer ends with %q: %w", clip(line), errors.Join(err, io.ErrUnexpectedEOF))
		}
	}
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
