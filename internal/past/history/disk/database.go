package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"
)

// database is one tsdb.
type database struct {
	dir     string
	options *tsdb.Options
	db      *tsdb.DB
	holes   []span      // the time of blocks that were damaged
	suspect func()      // has the blocks verified
	renew   atomic.Bool // its newest samples cannot be read: it is to be reopened
}

// tally counts samples.
type tally struct{ stored, refused uint64 }

func baseOptions() *tsdb.Options {
	o := tsdb.DefaultOptions()
	o.StripeSize = 512                     // the default is for millions of series
	o.HeadChunksWriteBufferSize = 64 << 10 // the least there is
	o.WALSegmentSize = 4 << 20             // a segment is dropped as a whole
	o.WALCompression = compression.Snappy  // a third, for little
	o.OutOfOrderTimeWindow = clockBack.Milliseconds()
	o.EnableOverlappingCompaction = true
	o.NoLockfile = true // ttmon-server locks its state directory as a whole
	return o
}

// fineOptions: blocks of 20 minutes, so that little is in the write-ahead log
// (a quick start after a crash) and old samples leave soon.
func fineOptions(s *Options) *tsdb.Options {
	o := baseOptions()
	o.MinBlockDuration = (20 * time.Minute).Milliseconds()
	o.MaxBlockDuration = o.MinBlockDuration
	o.RetentionDuration = s.FineFor.Milliseconds()
	o.MaxBytes = s.MaxBytes / 2
	return o
}

func coarseOptions(s *Options) *tsdb.Options {
	o := baseOptions()
	o.MinBlockDuration = (2 * time.Hour).Milliseconds()
	o.MaxBlockDuration = (54 * time.Hour).Milliseconds()
	o.RetentionDuration = s.CoarseFor.Milliseconds()
	o.MaxBytes = s.MaxBytes / 2
	return o
}

// memoryOptions: no write-ahead log, and little of everything.
func memoryOptions(s *Options) *tsdb.Options {
	o := fineOptions(s)
	o.WALSegmentSize = -1
	o.RetentionDuration = min(s.FineFor, time.Hour).Milliseconds()
	o.MaxBytes = 64 << 20
	return o
}

func (s *Store) openDatabase(dir string, o *tsdb.Options) (*database, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &database{dir: dir, options: o, suspect: s.suspect}
	own := *o
	own.NewCompactorFunc = d.newCompactor
	err := surviving(func() (err error) {
		d.db, err = tsdb.Open(dir, quiet(s.opt.Log), nil, &own, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the history in %s: %w", dir, err)
	}
	old := d.newest() - o.RetentionDuration
	d.holes = slices.DeleteFunc(loadHoles(dir), func(s span) bool { return s.To < old })
	return d, nil
}

// quiet drops messages below warning: the database logs every block.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(atLeast{log.Handler()}) }

type atLeast struct{ slog.Handler }

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}
func (h atLeast) WithAttrs(a []slog.Attr) slog.Handler { return atLeast{h.Handler.WithAttrs(a)} }
func (h atLeast) WithGroup(g string) slog.Handler      { return atLeast{h.Handler.WithGroup(g)} }

// append stores a row. ref says which of a series' references is this
// database's; full, whether what hardly changes belongs to it too. An error
// is the disk's: nothing of the row is stored.
func (d *database) append(ms int64, row []sample, ref int, full bool, count *tally) error {
	app := d.db.Appender(background)
	var n tally
	for i := range row {
		x := row[i].x
		if !full && !row[i].often {
			continue
		}
		r, err := app.Append(x.refs[ref], x.labels, ms, row[i].v)
		if err != nil {
			x.refs[ref] = 0
			n.refused++
			if !orderly(err) {
				_ = app.Rollback()
				return err
			}
			continue
		}
		x.refs[ref] = r
		n.stored++
	}
	if err := app.Commit(); err != nil {
		return err
	}
	count.stored += n.stored
	count.refused += n.refused
	return nil
}

// orderly errors are about one sample, not about the database.
func orderly(err error) bool {
	return errors.Is(err, storage.ErrOutOfOrderSample) || errors.Is(err, storage.ErrOutOfBounds) ||
		errors.Is(err, storage.ErrTooOldSample) || errors.Is(err, storage.ErrDuplicateSampleForTimestamp)
}

// ahead reports whether the newest sample is so far in the future that samples
// of now would be refused.
func (d *database) ahead(ms int64) bool {
	newest := d.newest()
	return newest > ms+clockBack.Milliseconds() && newest < 1<<62 // the head begins with the last of all times
}

// newest is the time of the last sample; before all times if there is none.
func (d *database) newest() int64 {
	t := d.db.Head().MaxTime()
	for _, b := range d.db.Blocks() {
		t = max(t, b.Meta().MaxTime)
	}
	return t
}

// oldest is the time of the first sample; after all times if there is none.
func (d *database) oldest() int64 {
	t := min(d.db.Head().MinTime(), d.db.Head().MinOOOTime())
	for _, b := range d.db.Blocks() {
		t = min(t, b.Meta().MinTime)
	}
	return t
}

func (d *database) size() (n int64) {
	for _, b := range d.db.Blocks() {
		n += b.Size()
	}
	return n + d.db.Head().Size()
}

func (d *database) close() { _ = d.db.Close() }

// damaged tells an error of the files' content from one of the file system.
func damaged(err error) bool {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EIO) {
		return false
	}
	return true
}

// setAside renames a database out of the way. Only the last one is kept.
func setAside(dir, why string) (where string, err error) {
	return moveAside(dir, dir+"."+why)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
