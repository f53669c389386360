// Package replay lets a recording stand for a host: its snapshots, blocks and
// buffers at the moment that is shown, its events, and what was printed.
package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/when"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Recording is a recording that stands for a host.
type Recording struct {
	Name   string
	Player *recording.Player
	Reader *recording.Reader
	Charts *history.Store
	file   string
}

// Open opens a recording and goes to its beginning.
func Open(file string) (*Recording, error) {
	r, err := OpenFile(file)
	if err != nil {
		return nil, err
	}
	return &Recording{Name: filepath.Base(file), Reader: r, Player: recording.NewPlayer(r), Charts: history.New(), file: file}, nil
}

// Close closes the file.
func (r *Recording) Close() { r.Reader.Close() }

// FindMarks looks for events to jump to, in the background.
func (r *Recording) FindMarks() {
	marks, err := OpenFile(r.file)
	if err != nil {
		return // without them there is nothing to jump to
	}
	go func() {
		defer marks.Close()
		_ = r.Player.Find(marks)
	}()
}

// OpenFile opens a file in which something is recorded, and says what is wrong
// with it.
func OpenFile(path string) (*recording.Reader, error) {
	r, err := recording.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, recording.ErrForeign):
		return nil, exit.Usage("%w", err)
	case err != nil:
		return nil, console.FileError(err)
	}
	if _, _, ok := r.Span(); !ok {
		r.Close()
		return nil, exit.With(exit.NoDevice, "%s: nothing is recorded in it yet", path)
	}
	return r, nil
}

// AppendMissing says what of a recording could not be read, after it has been read:
// damage is found on the way.
func AppendMissing(dst []byte, file string, r *recording.Reader) []byte {
	say := func(format string, args ...any) {
		dst = fmt.Appendf(dst, "ttmon: %s: %s\n", words.Escape(file), fmt.Sprintf(format, args...))
	}
	if r.Damaged > 0 {
		say("it is damaged in %s, and what happened there is missing: ttmon replay FILE events says when", words.Count(r.Damaged, "place"))
	}
	if _, last, ok := r.Span(); ok && r.Torn {
		say("it breaks off after %s, within a block: its recorder was killed, had no room left, or is writing now", last.Local().Format("15:04:05"))
	}
	return dst
}

// Moment is the time that --at means, or whatever is like it: from says what.
func Moment(r *recording.Reader, from, s string) (time.Time, error) {
	return moment(r, from, s, recording.Peak)
}

// Eventful is where a look at a recording begins that does not say where: at the
// first of its worst events, or at its start if nothing happened.
func Eventful(r *recording.Reader) (time.Time, error) {
	first, last, _ := r.Span()
	marks, err := r.Events()
	if err != nil {
		return first, fmt.Errorf("looking for events: %w", err)
	}
	at, worst := first, model.Fine
	for i := range marks {
		if e := &marks[i].Event; e.Level > worst && !e.Time.Before(first) && !e.Time.After(last) {
			at, worst = e.Time, e.Level
		}
	}
	return at, nil
}

// SnapshotMoment is Moment for views that show one snapshot: the peak is the
// snapshot that has the most.
func SnapshotMoment(r *recording.Reader, from, s string) (time.Time, error) {
	return moment(r, from, s, recording.PeakSnapshot)
}

func moment(r *recording.Reader, from, s string, peak func(*recording.Reader, model.Pool) (time.Time, error)) (time.Time, error) {
	first, last, _ := r.Span()
	switch s {
	case "", "start":
		return first, nil
	case "end":
		return last, nil
	}
	if name, ok := strings.CutPrefix(s, "peak"); ok {
		pool, err := peakPool(from, name)
		if err != nil {
			return first, err
		}
		return peak(r, pool)
	}
	if d, ok := when.Span(s); ok {
		if d < 0 {
			return last.Add(d), nil
		}
		return first.Add(d), nil
	}
	if t, err := time.ParseInLocation("15:04:05", s, time.Local); err == nil {
		y, m, d := first.Local().Date()
		t = time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, time.Local)
		if t.Before(first.Add(-time.Second)) {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	t, err := when.Ago(from, s, last)
	if err != nil {
		return t, exit.Usage("%s: %q is not a moment: 20m (after the beginning), -30s (before the end), 14:03:20, a date, start, end or peak", from, s)
	}
	return t, nil
}

// peakPool is the pool of "peak", or of "peak:l1".
func peakPool(from, name string) (model.Pool, error) {
	if name == "" {
		return model.DRAM, nil
	}
	var names []string
	for _, p := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
		if name == ":"+p.String() {
			return p, nil
		}
		names = append(names, "peak:"+p.String())
	}
	return model.DRAM, exit.Usage("%s: %q is no peak that is known; there are %s", from, "peak"+name, strings.Join(names, ", "))
}
