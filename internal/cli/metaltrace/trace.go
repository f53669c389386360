package metaltrace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Kind is what wrote a trace.
type Kind string

// The kinds.
const (
	DeviceLog   Kind = "device profiler"
	OpReport    Kind = "op report"
	Tracy       Kind = "Tracy"
	GraphReport Kind = "graph report"
)

// Trace is what a file holds.
type Trace struct {
	Kind    Kind
	Written time.Time // when the file was
	Slices  []Slice
	// Dropped counts beginnings without an end and ends without a beginning:
	// the profiler's buffers on the chip are small.
	Dropped int
}

// Slice is something that lasted, in nanoseconds of its clock.
type Slice struct {
	Clock    string // "chip 0", "host": times of one clock compare
	Group    string // "device profiler, chip 0"
	Track    string // "core 1,2 BRISC"
	Name     string
	From, To int64
	Args     []string // name, value, name, value, …
}

// LineError is a line that cannot be read.
type LineError struct {
	File string
	Line int
	Why  string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why) }

// ErrForeign is the error of a file that is none of the known ones.
var ErrForeign = errors.New("not a trace that is known: profile_log_device.csv, ops_perf_results_*.csv, tracy_ops_times.csv or the db.sqlite of a graph report")

// Limits of what is read: a log of a long run has gigabytes, and no viewer
// shows that.
const (
	maxSlices = 2_000_000
	maxLine   = 1 << 20
)

// Read reads a file of any of the kinds.
func Read(ctx context.Context, path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, ErrForeign)
	}
	var t *Trace
	var head [16]byte
	if n, _ := io.ReadFull(f, head[:]); bytes.HasPrefix(head[:n], []byte("SQLite format 3\x00")) {
		t, err = readGraph(ctx, path)
	} else if _, err = f.Seek(0, io.SeekStart); err == nil {
		t, err = Parse(f, path)
	}
	if err != nil {
		return nil, err
	}
	t.Written = st.ModTime()
	return t, nil
}

// Parse reads one of the kinds that are text. name is for errors.
func Parse(r io.Reader, name string) (*Trace, error) {
	in := &lines{s: bufio.NewScanner(r), file: name}
	in.s.Buffer(make([]byte, 64<<10), maxLine)
	first, ok := in.next()
	switch {
	case !ok && in.s.Err() != nil:
		return nil, in.bad("%v", in.s.Err())
	case !ok:
		return nil, fmt.Errorf("%s: %w", name, ErrForeign)
	case bytes.HasPrefix(first, []byte("ARCH:")):
		return parseDeviceLog(in, string(first))
	}
	columns, err := fields(first)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, ErrForeign)
	}
	names := map[string]bool{}
	for _, c := range columns {
		names[c] = true
	}
	switch {
	case names["OP CODE"]:
		return parseOps(in, columns)
	case names["ns_since_start"]:
		return parseTracy(in, columns)
	}
	return nil, fmt.Errorf("%s: %w; its first line has the columns %.100q", name, ErrForeign, strings.Join(columns, ","))
}

// lines are those of a file, with their numbers.
type lines struct {
	s    *bufio.Scanner
	file string
	n    int
}

func (l *lines) next() ([]byte, bool) {
	for l.s.Scan() {
		l.n++
		if b := bytes.TrimRight(l.s.Bytes(), "\r"); len(bytes.TrimSpace(b)) > 0 {
			return b, true
		}
	}
	return nil, false
}

func (l *lines) bad(format string, args ...any) error {
	return &LineError{l.file, max(l.n, 1), fmt.Sprintf(format, args...)}
}
