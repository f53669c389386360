package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ttmon/ttmon/internal/replace"
	"github.com/ttmon/ttmon/internal/sorted"
)

const (
	saveEvery = time.Minute // while jobs run
	saveSoon  = 5 * time.Second
)

// file is where a book is kept: one JSON document, replaced as a whole.
type file struct {
	path    string
	changed bool // a job has ended since it was written
	saved   time.Time
	report  func(error)
}

// document is its contract.
type document struct {
	Schema string `json:"schema"`
	Jobs   []Job  `json:"jobs"`
}

const schema = "ttmon.jobs.book/1"

// Open reads the book in dir, or begins one. A book that cannot be read is set
// aside, and said to report, as is every later failure to write.
func Open(dir string, report func(error)) *Book {
	b := New()
	b.file = &file{path: filepath.Join(dir, "jobs.json"), report: report}
	text, err := os.ReadFile(b.file.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b
	}
	var d document
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err == nil && d.Schema != schema {
		err = fmt.Errorf("it is %q, not %s", d.Schema, schema)
	}
	if err != nil {
		report(fmt.Errorf("reading the jobs in %s, starting with an empty list: %w", b.file.path, err))
		_ = os.Rename(b.file.path, b.file.path+".unreadable")
		return b
	}
	for i := range d.Jobs {
		j := &d.Jobs[i]
		j.Running = false // until it is seen again
		b.ended = append(b.ended, j)
	}
	b.trim()
	return b
}

func (f *file) dirty() {
	if f != nil {
		f.changed = true
	}
}

// tick writes the book when that is due.
func (f *file) tick(b *Book, now time.Time) {
	if f == nil {
		return
	}
	due := len(b.live) > 0 && now.Sub(f.saved) >= saveEvery || f.changed && now.Sub(f.saved) >= saveSoon
	if due || now.Before(f.saved) {
		f.save(b, now)
	}
}

// Close writes the book for the last time.
func (b *Book) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil && (b.file.changed || len(b.live) > 0) {
		b.file.save(b, time.Now())
	}
}

func (f *file) save(b *Book, now time.Time) {
	f.saved, f.changed = now, false
	d := document{Schema: schema, Jobs: []Job{}}
	for _, j := range b.ended {
		d.Jobs = append(d.Jobs, *j)
	}
	for _, j := range b.live {
		d.Jobs = append(d.Jobs, *j)
	}
	sorted.Stable(d.Jobs, func(a, b *Job) int { return a.Last.Compare(b.Last) })
	text, err := json.Marshal(d)
	if err == nil {
		err = replace.File(f.path, text, 0o600)
	}
	if err != nil {
		f.report(fmt.Errorf("writing what jobs took: %w", err))
	}
}
