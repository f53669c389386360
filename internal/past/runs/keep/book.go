// Package keep finds runs in the snapshots of a host and keeps them on disk. It is
// fed by ttmon-server, or by ttmon top where none runs (package own); what it keeps
// is asked for with a runs.Query.
package keep

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Options of a Book.
type Options struct {
	Dir      string        // where runs are kept; it is made
	Keep     time.Duration // how long after its end; 0: DefaultKeep
	MaxBytes int64         // on the disk; 0: DefaultMaxBytes
	// SaveEvery is how often the runs that have not ended are written; 0: every 30 s.
	SaveEvery time.Duration
	// Interval is the time between two snapshots; nil: a second.
	Interval func() time.Duration
	// Report takes errors of the disk; a failure is reported when it begins.
	Report func(error)
}

// Bounds where nothing else is configured.
const (
	DefaultKeep     = 90 * 24 * time.Hour
	DefaultMaxBytes = 64 << 20
)

// Book is the account of all runs. It is safe for several goroutines.
type Book struct {
	opt   Options
	store *Store

	mu      sync.Mutex
	tracker tracker
	pending []runs.Run // ended; not yet on the disk
	saved   time.Time
	highest uint64 // number of a run on the disk
	failing bool
}

// saveEvery is how often the runs that have not ended are written.
const saveEvery = 30 * time.Second

// checkpoint is what a successor must know beside the runs that have ended.
type checkpoint struct {
	Schema string      `json:"schema"` // checkpointSchema
	Next   uint64      `json:"next"`   // the highest number that was given
	Last   time.Time   `json:"last"`   // snapshot
	Live   []liveState `json:"live"`
}

const checkpointSchema = "ttmon.runs.live/1"

// liveState is a run that has not ended, and what the next snapshot is measured
// against.
type liveState struct {
	Run     runs.Run          `json:"run"`
	Members []model.ProcessID `json:"members"`
	Gone    time.Time         `json:"gone,omitzero"`
	Held    []heldState       `json:"held"`
	Devices map[int]sample    `json:"devices"`
}

type heldState struct {
	Device int             `json:"device"`
	Chip   uint64          `json:"chip,string"`
	Pools  model.PoolBytes `json:"pools"`
}

// New returns a book that reads and writes below a directory. Restore comes before
// the first Observe.
func New(o Options) *Book {
	if o.Report == nil {
		o.Report = func(error) {}
	}
	if o.SaveEvery == 0 {
		o.SaveEvery = saveEvery
	}
	b := &Book{opt: o}
	b.store = OpenStore(o.Dir, o.Keep, o.MaxBytes)
	b.tracker = tracker{interval: o.Interval, ended: func(r *runs.Run) { b.pending = append(b.pending, r.Clone()) }}
	return b
}

// Restore takes over what a predecessor wrote, which must have ended. Where the
// disk does not work the book keeps what fits into memory.
func (b *Book) Restore() {
	if err := os.MkdirAll(b.opt.Dir, 0o700); err != nil {
		b.report(fmt.Errorf("making the directory of runs: %w", err))
	}
	if err := b.restore(); err != nil {
		b.opt.Report(err)
	}
}

// liveFile has the runs that have not ended.
const liveFile = "live.json"

func (b *Book) livePath() string { return filepath.Join(b.opt.Dir, liveFile) }

// restore takes over what a predecessor knew. A file that cannot be read is
// renamed.
func (b *Book) restore() error {
	highest, ended := b.store.Highest(), b.store.newest()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tracker.next, b.highest = highest, highest
	for _, end := range ended { // what is later is not known, where the checkpoint is lost
		if end.After(b.tracker.last) {
			b.tracker.last = end
		}
	}
	c, err := readCheckpoint(b.livePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		_ = os.Rename(b.livePath(), b.livePath()+".unreadable")
		return err
	}
	b.tracker.next, b.tracker.last = max(b.tracker.next, c.Next), c.Last
	b.highest = b.tracker.next
	for i := range c.Live {
		// A crash may come after a run was written and before the checkpoint.
		if end, ok := ended[c.Live[i].Run.ID]; ok && !c.Live[i].Run.Last.After(end) {
			continue
		}
		b.tracker.live = append(b.tracker.live, c.Live[i].restore())
	}
	return nil
}

func (st *liveState) restore() *live {
	l := &live{Run: st.Run, gone: st.Gone}
	l.prepare()
	for _, id := range st.Members {
		l.members[id] = true
	}
	for _, h := range st.Held {
		l.before[place{h.Device, h.Chip}] = h.Pools
	}
	maps.Copy(l.devices, st.Devices)
	return l
}

func (l *live) state() liveState {
	st := liveState{Run: l.Run, Members: []model.ProcessID{}, Gone: l.gone, Held: []heldState{}, Devices: maps.Clone(l.devices)}
	for id := range l.members {
		st.Members = append(st.Members, id)
	}
	for at, pools := range l.before {
		st.Held = append(st.Held, heldState{at.device, at.chip, pools})
	}
	return st
}

// Last is the time of the last snapshot that was taken in; after Restore that of
// the predecessor's, as far as it is on the disk.
func (b *Book) Last() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tracker.last
}

// Observe takes a snapshot in.
func (b *Book) Observe(s *model.Snapshot) {
	b.mu.Lock()
	b.tracker.observe(s)
	due := len(b.pending) > 0 || b.tracker.next != b.highest || s.Time.Sub(b.saved).Abs() >= b.opt.SaveEvery && len(b.tracker.live) > 0
	b.mu.Unlock()
	if due {
		b.save(s.Time)
	}
}

// Close writes what is not on the disk yet.
func (b *Book) Close() {
	b.save(time.Now())
	b.store.Close()
}

// save writes the runs that have ended, and where the others are. A run is never
// in neither place: those that ended are written first.
func (b *Book) save(now time.Time) {
	b.mu.Lock()
	pending := b.pending
	b.mu.Unlock()
	err := b.store.Append(pending, now)
	b.mu.Lock()
	if err == nil {
		b.pending = b.pending[len(pending):]
	} else if over := len(b.pending) - maxPending; over > 0 {
		b.pending = b.pending[over:]
	}
	c := checkpoint{Schema: checkpointSchema, Next: b.tracker.next, Last: b.tracker.last, Live: []liveState{}}
	for _, l := range b.tracker.live {
		c.Live = append(c.Live, l.state())
	}
	text, encodeErr := json.Marshal(c)
	b.saved, b.highest = now, c.Next
	b.mu.Unlock()
	if err = errors.Join(err, encodeErr); err == nil {
		err = replace.File(b.livePath(), text, 0o600)
	}
	b.report(err)
}

// maxPending bounds the runs that wait for a disk that does not work.
const maxPending = 1000

// report reports the first of several failures.
func (b *Book) report(err error) {
	b.mu.Lock()
	first := err != nil && !b.failing
	b.failing = err != nil
	b.mu.Unlock()
	if first {
		b.opt.Report(fmt.Errorf("keeping runs: %w", err))
	}
}

// Find lists the runs of a query, the oldest first; more reports that older ones
// match, too.
func (b *Book) Find(q runs.Query) (list []runs.Run, more bool, err error) {
	b.mu.Lock()
	newest := make([]runs.Run, 0, len(b.pending)+len(b.tracker.live))
	for i := range b.pending {
		newest = append(newest, b.pending[i].Clone())
	}
	for _, l := range b.tracker.live {
		newest = append(newest, l.Clone())
	}
	b.mu.Unlock()
	return b.store.find(q, newest)
}

// byStart orders runs, the oldest first.
func byStart(a, b runs.Run) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) }
