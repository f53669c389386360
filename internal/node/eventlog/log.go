package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/model"
)

// Sizes of a log.
const (
	maxLine  = 64 << 10 // bytes of one event
	current  = "events.jsonl"
	previous = "events.1.jsonl"
)

// Log is an event log. Its methods may be called by any goroutine.
type Log struct {
	*Recent
	dir     string
	maxFile int64

	mu  sync.Mutex
	out replace.Lines // the current file
	// first is the oldest event that is kept, here the oldest one of the current
	// file; 0: there is none.
	first, here uint64
}

// Sizes bound a log.
type Sizes struct {
	File   int64 // bytes of a file on disk; there are two
	Recent int   // events in memory
}

// Open opens the log below dir. It always returns a Log: with an error, it is
// one that keeps events in memory and tries the disk again.
func Open(dir string, s Sizes) (*Log, error) {
	l := &Log{Recent: NewRecent(s.Recent), dir: dir, maxFile: s.File, out: replace.Lines{Path: filepath.Join(dir, current)}}
	for _, file := range l.files() {
		l.here = 0
		_ = scan(file, func(e *model.Event) bool {
			l.begin(e.Seq)
			l.Add(*e)
			return true
		})
	}
	return l, l.out.Open()
}

// begin notes the oldest event that is kept, and that of the current file.
func (l *Log) begin(seq uint64) {
	if l.first == 0 {
		l.first = seq
	}
	if l.here == 0 {
		l.here = seq
	}
}

// files opens the files that are there, the older one first.
func (l *Log) files() (list []*os.File) {
	for _, name := range []string{previous, current} {
		if file, err := os.Open(filepath.Join(l.dir, name)); err == nil {
			list = append(list, file)
		}
	}
	return list
}

// scan calls f with the events of a file, oldest first, and closes it. Lines that
// are no event (torn by a crash, damaged) are passed over.
func scan(file *os.File, f func(*model.Event) bool) error {
	defer file.Close()
	r := bufio.NewReaderSize(file, maxLine)
	for {
		line, err := r.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			line = nil // no event is that long
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if e, ok := parse(line); ok && !f(&e) {
			return nil
		}
	}
}

func parse(line []byte) (e model.Event, ok bool) {
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.Seq > 0 && e.Seq < 1<<53 && e.Kind != ""
}

// Append stores events, and only then shows them. It numbers them. The error
// says that they are in memory only.
func (l *Log) Append(events ...model.Event) error {
	if len(events) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Number(events)
	err := l.store(events)
	l.begin(events[0].Seq)
	shown := slices.Clone(events)
	for i := range shown {
		shown[i].Volatile = err != nil
	}
	l.Add(shown...)
	return err
}

// store writes events and waits until they are on the disk.
func (l *Log) store(events []model.Event) error {
	if err := l.out.Open(); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil || len(line) >= maxLine {
			e.Values, e.Bounds = nil, nil
			e.Text = e.Text[:min(len(e.Text), 1024)]
			line, _ = json.Marshal(e)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	if l.out.Size+int64(b.Len()) > l.maxFile {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	return l.out.Append(b.Bytes())
}

// rotate makes the file the previous one, and begins another.
func (l *Log) rotate() error {
	l.out.Close()
	if err := os.Rename(filepath.Join(l.dir, current), filepath.Join(l.dir, previous)); err != nil {
		return fmt.Errorf("rotating the event log: %w", err)
	}
	l.first, l.here = l.here, 0
	return l.out.Open()
}

// First is the number of the oldest event that is kept; Last()+1 where there is
// none.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == 0 {
		return l.Last() + 1
	}
	return l.first
}

// Close closes the file.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.Close()
}
