package keep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// Find lists the runs of a query that have ended, the oldest first.
func (s *Store) Find(q runs.Query) (list []runs.Run, more bool, err error) { return s.find(q, nil) }

// find searches newest, which are not on the disk, and then the files from the
// newest to the oldest, until it has as many runs as were asked for. Runs that are
// named are first searched by their numbers, in the files that have these.
func (s *Store) find(q runs.Query, newest []runs.Run) (list []runs.Run, more bool, err error) {
	if q.Jobs {
		return s.findJobs(q, newest)
	}
	if len(q.Names) == 0 {
		f, err := s.search(&q, newest, func(string) bool { return true })
		if err != nil {
			return nil, false, err
		}
		list, more = f.newest(f.found)
		return list, more, nil
	}
	f, err := s.search(&q, newest, unlessIndexed(func(x index) bool { return x.hasNumber(q.Names) }))
	if err == nil && !f.done() {
		f, err = s.search(&q, newest, unlessIndexed(func(x index) bool { return x.mayHave(q.Names) }))
	}
	if err != nil {
		return nil, false, err
	}
	list, more = f.newest(f.found)
	if len(list) == 0 {
		list, more = f.newest(f.otherwise)
	}
	return list, more, nil
}

// findJobs lists all runs of the jobs that have a run which matches: a job may have
// begun before the time that is asked for.
func (s *Store) findJobs(q runs.Query, newest []runs.Run) (list []runs.Run, more bool, err error) {
	named := unlessIndexed(func(x index) bool { return x.mayHave(q.Names) })
	f, err := s.search(&q, newest, func(path string) bool { return len(q.Names) == 0 || named(path) })
	if err != nil {
		return nil, false, err
	}
	list, more = f.newest(f.found)
	if len(list) == 0 {
		return nil, false, nil
	}
	ids := map[string]bool{}
	for i := range list {
		ids[list[i].Job.ID] = true
	}
	whole := runs.Query{Jobs: true, Names: slices.Collect(maps.Keys(ids)), Visible: q.Visible, Show: q.Show}
	f, err = s.search(&whole, newest, unlessIndexed(func(x index) bool { return x.mayHave(whole.Names) }))
	if err != nil {
		return nil, false, err
	}
	list, cut := f.newest(f.found)
	return list, more || cut, nil
}

// unlessIndexed reports whether a file is worth unpacking: has decides where it has
// an index.
func unlessIndexed(has func(index) bool) func(path string) bool {
	return func(path string) bool {
		x, err := readIndex(path)
		return err != nil || has(x)
	}
}

// search takes in what matches, out of newest and of the files that are worth it.
func (s *Store) search(q *runs.Query, newest []runs.Run, worth func(path string) bool) (*finder, error) {
	f := newFinder(q)
	for i := len(newest) - 1; i >= 0; i-- {
		f.add(&newest[i])
	}
	texts, err := s.texts(q.Since, worth)
	if err != nil {
		return nil, err
	}
	for read := range texts {
		if f.done() {
			break
		}
		text, err := read()
		if err != nil {
			return nil, err
		}
		f.scan(text)
	}
	return f, nil
}

// texts yields how to read the contents of the files that may have runs which
// ended after a time and are worth it, the newest first. The current file is read first: another
// process may compress it meanwhile, and has the compressed one in place before it
// removes it.
func (s *Store) texts(since time.Time, worth func(path string) bool) (func(yield func(func() ([]byte, error)) bool), error) {
	s.mu.Lock()
	now, err := os.ReadFile(filepath.Join(s.dir, current))
	files := s.files()
	s.mu.Unlock()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading runs: %w", err)
	}
	return func(yield func(func() ([]byte, error)) bool) {
		if !yield(func() ([]byte, error) { return now, nil }) {
			return
		}
		for i := len(files) - 1; i >= 0; i-- {
			if files[i].last.Before(since.Truncate(time.Second)) || !worth(files[i].path) {
				continue
			}
			if !yield(func() ([]byte, error) { return unpack(files[i].path) }) {
				return
			}
		}
	}, nil
}

// unpack reads a compressed file; one that has been removed meanwhile is empty.
func unpack(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading runs: %w", err)
	}
	defer f.Close()
	dec, err := zstd.NewReader(bufio.NewReader(f), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer dec.Close()
	text, err := io.ReadAll(io.LimitReader(dec, maxUnpacked))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return text, nil
}

// finder collects the runs of a query, from the newest line to the oldest.
type finder struct {
	q         *runs.Query
	limit     int
	seen      map[uint64]bool // a later line of the same run has been seen
	parts     [][]byte        // that a line must have
	word      []byte          // that it must have, in lower case; nil: none
	found     []runs.Run
	otherwise []runs.Run // whose processes or jobs have the name
}

func newFinder(q *runs.Query) *finder {
	limit := q.Limit
	if limit <= 0 || limit > runs.MaxAnswer {
		limit = runs.MaxAnswer
	}
	return &finder{q: q, limit: limit, seen: map[uint64]bool{}, parts: partsOf(q), word: wordOf(q)}
}

// newest is as much of a list as was asked for, the oldest first.
func (f *finder) newest(list []runs.Run) (newest []runs.Run, more bool) {
	slices.SortStableFunc(list, byStart)
	over := max(0, len(list)-f.limit)
	return list[over:], over > 0
}

// done reports whether enough was found. Runs are in the order of their ends, and
// wanted in that of their starts: one more file is not worth reading for it.
func (f *finder) done() bool {
	if f.byNumber() {
		return len(f.found) >= len(f.q.Names)
	}
	return len(f.found) > f.limit
}

// byNumber reports whether runs are named one by one.
func (f *finder) byNumber() bool { return len(f.q.Names) > 0 && !f.q.Jobs }

func (f *finder) add(r *runs.Run) {
	if f.seen[r.ID] {
		return
	}
	f.seen[r.ID] = true
	switch {
	case !f.q.Matches(r):
	case len(f.q.Names) == 0 || f.q.Named(r):
		f.found = append(f.found, *r)
	case f.byNumber() && f.q.NamedOtherwise(r):
		f.otherwise = append(f.otherwise, *r)
	}
}

// scan takes the lines of a file, from the last to the first. One that is named ends
// it; of others the whole file counts, see done.
func (f *finder) scan(text []byte) {
	for len(text) > 0 && (!f.byNumber() || !f.done()) {
		line := text
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			line, text = text[i+1:], text[:i]
		} else {
			text = nil
		}
		id, ok := lineID(line)
		if !ok || f.seen[id] {
			continue
		}
		if !f.likely(id, line) {
			f.seen[id] = whole(line) // what it says counts, also where an earlier one would match
			continue
		}
		if r, ok := parse(line); ok {
			f.add(&r)
		}
	}
}

// whole reports whether a line ends as all do. One that a crash cut off says nothing.
func whole(line []byte) bool {
	return bytes.HasSuffix(line, []byte("]}")) || bytes.HasSuffix(line, []byte("null}"))
}

// likely reports whether a line may be what is asked for, without decoding it:
// that takes a hundred times as long as looking for a few bytes.
func (f *finder) likely(id uint64, line []byte) bool {
	if f.byNumber() && !f.mayBeNamed(id, line) {
		return false
	}
	if f.word != nil && !bytes.Contains(bytes.ToLower(line), f.word) {
		return false
	}
	for _, part := range f.parts {
		if !bytes.Contains(line, part) {
			return false
		}
	}
	return !f.q.Failed || bytes.Contains(line, []byte(`"kind":"killed"`)) || bytes.Contains(line, []byte(`"exit_code":`)) && !bytes.Contains(line, []byte(`"exit_code":0`)) ||
		bytes.Contains(line, []byte(`"oom_killed":true`))
}

// mayBeNamed reports whether a line has one of the names: as the number of the run,
// of a process, or somewhere in its job.
func (f *finder) mayBeNamed(id uint64, line []byte) bool {
	return slices.ContainsFunc(f.q.Names, func(name string) bool {
		n, ok := runs.ParseID(name)
		return ok && n == id || bytes.Contains(line, inJSON(name))
	})
}

// partsOf is what every line has that a query asks for.
func partsOf(q *runs.Query) (parts [][]byte) {
	if q.UID != nil {
		parts = append(parts, fmt.Appendf(nil, `"uid":%d,`, *q.UID))
	}
	if q.Jobs {
		parts = append(parts, []byte(`"job":{`))
	}
	for _, s := range []string{q.Command, q.Job} {
		if s != "" {
			parts = append(parts, inJSON(s))
		}
	}
	return parts
}

// wordOf is a text that is asked for, in lower case; nil where a line may have it in
// another form: escaped, or as the number of the run.
func wordOf(q *runs.Query) []byte {
	plain := func(r rune) bool { return r > 0x20 && r < 0x7f && !strings.ContainsRune(`"\<>&`, r) || r == ' ' }
	number := func(r rune) bool { return r == 'r' || r >= '0' && r <= '9' }
	word := strings.ToLower(q.Text)
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) || !strings.ContainsFunc(word, func(r rune) bool { return !number(r) }) {
		return nil
	}
	return []byte(word)
}

// inJSON is a text as a JSON string has it, between its quotes.
func inJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // every line has it
	}
	return b[1 : len(b)-1]
}

// lineID is the number of the run of a line, which begins with it.
func lineID(line []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"id":`))
	if !ok {
		return 0, false
	}
	end := bytes.IndexByte(rest, ',')
	if end < 0 || end > 20 {
		return 0, false
	}
	id, err := strconv.ParseUint(string(rest[:end]), 10, 53)
	return id, err == nil && id > 0
}

// parse reads a line. One that is torn or damaged is none.
func parse(line []byte) (r runs.Run, ok bool) {
	if id, ok := lineID(line); !ok || len(line) > maxLine || json.Unmarshal(line, &r) != nil || r.ID != id {
		return runs.Run{}, false
	}
	if r.Start.IsZero() || r.End.Kind == "" {
		return runs.Run{}, false
	}
	return r, true
}
